-- Which complete snapshots of markets, from one instant to another, both inclusive, are from before prices were written
-- with them? A snapshot with prices of other assets only still has a total.
SELECT DISTINCT at
FROM snapshot
WHERE family = 'markets'
  AND at >= toDateTime({start:UInt32}, 'UTC')
  AND at <= toDateTime({end:UInt32}, 'UTC')
  AND kind IN ('job', 'backfill')
  AND at NOT IN (
    SELECT observed_at FROM market_price
    WHERE observed_at >= toDateTime({start:UInt32}, 'UTC') AND observed_at <= toDateTime({end:UInt32}, 'UTC')
    UNION ALL
    SELECT observed_at FROM tvl
    WHERE observed_at >= toDateTime({start:UInt32}, 'UTC') AND observed_at <= toDateTime({end:UInt32}, 'UTC'))
ORDER BY at
