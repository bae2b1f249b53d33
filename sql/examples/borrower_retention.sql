-- How many borrowers come back? By month of the first loan: borrowers with another loan after each number of months.
SELECT cohort, dateDiff('month', cohort, month) AS months_later, count() AS borrowers,
    round(borrowers / max(borrowers) OVER (PARTITION BY cohort), 4) AS share
FROM
(
    SELECT address, toStartOfMonth(min(time)) AS cohort, arrayJoin(groupUniqArray(toStartOfMonth(time))) AS month
    FROM loan
    GROUP BY address
)
GROUP BY cohort, months_later
ORDER BY cohort, months_later;
