-- Which complete snapshots of loans, from one instant to another, both inclusive, have no liquidations? Each
-- snapshot that this version takes has a total.
SELECT DISTINCT at
FROM snapshot
WHERE family = 'loans'
  AND at >= toDateTime({start:UInt32}, 'UTC')
  AND at <= toDateTime({end:UInt32}, 'UTC')
  AND at NOT IN (
    SELECT observed_at FROM liquidations
    WHERE asset_id = ''
      AND observed_at >= toDateTime({start:UInt32}, 'UTC')
      AND observed_at <= toDateTime({end:UInt32}, 'UTC'))
ORDER BY at
