-- Where are scheduled snapshots of prices more than five minutes apart?
SELECT previous, at, dateDiff('second', previous, at) AS seconds
FROM
(
    SELECT at, lagInFrame(at) OVER (ORDER BY at ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS previous
    FROM snapshot FINAL
    WHERE family = 'prices' AND kind = 'job'
)
WHERE previous > toDateTime(0, 'UTC') AND seconds > 300
ORDER BY at;
