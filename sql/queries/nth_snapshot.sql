-- Which one, of the snapshots of a family that jobs and backfills completed after one instant and up to another, is that
-- of a number, counted from 1?
SELECT DISTINCT at
FROM snapshot
WHERE family = {family:String}
  AND at > toDateTime({after:UInt32}, 'UTC')
  AND at <= toDateTime({until:UInt32}, 'UTC')
  AND kind IN ('job', 'backfill')
ORDER BY at
LIMIT 1 OFFSET {number:UInt32} - 1
