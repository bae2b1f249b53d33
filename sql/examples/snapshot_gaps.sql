-- Where were scheduled snapshots of prices more than five minutes apart, in the last 30 days?
SELECT previous, at, dateDiff('second', previous, at) AS seconds
FROM
(
    SELECT at, lagInFrame(at, 1, at) OVER (ORDER BY at) AS previous
    FROM snapshot
    WHERE family = 'prices' AND kind = 'job' AND at BETWEEN now('UTC') - INTERVAL 30 DAY AND now('UTC')
)
WHERE seconds > 300
ORDER BY at;
