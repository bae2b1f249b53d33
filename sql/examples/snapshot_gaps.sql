-- What were the longest times between scheduled snapshots of prices, in the last 30 days? The ten longest.
SELECT previous, at, dateDiff('second', previous, at) AS seconds
FROM
(
    SELECT at, lagInFrame(at, 1, at) OVER (ORDER BY at) AS previous
    FROM snapshot
    WHERE dataset = 'prices' AND kind = 'job' AND at BETWEEN now('UTC') - INTERVAL 30 DAY AND now('UTC')
)
WHERE at > previous
ORDER BY seconds DESC, at
LIMIT 10;
