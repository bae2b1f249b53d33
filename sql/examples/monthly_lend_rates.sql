-- What was the lend APR of each asset in each of the last 12 months, weighted by the time that each rate held?
-- A month begins with its first rate, and the present one ends now.
SELECT month, asset_id, symbol, round(sum(apr * seconds) / nullIf(sum(seconds), 0), 6) AS mean_apr
FROM
(
    SELECT asset_id, symbol, apr, toStartOfMonth(observed_at) AS month,
        least(toDateTime64(month + INTERVAL 1 MONTH, 3, 'UTC'), now('UTC')) AS end,
        dateDiff('second', observed_at, leadInFrame(observed_at, 1, end) OVER later) AS seconds
    FROM lend_rate
    WHERE observed_at >= toStartOfMonth(now('UTC')) - INTERVAL 11 MONTH
    WINDOW later AS (PARTITION BY asset_id, month ORDER BY observed_at ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING)
)
GROUP BY month, asset_id, symbol
ORDER BY month, symbol, asset_id;
