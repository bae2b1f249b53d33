-- Which one, of the snapshots of a family that jobs and backfills completed in a range [start, end), is that of a
-- number, counted from 1?
SELECT DISTINCT at
FROM snapshot
WHERE family = {family:String}
  AND at >= toDateTime({start:UInt32}, 'UTC')
  AND at < toDateTime({end:UInt32}, 'UTC')
  AND kind IN ('job', 'backfill')
ORDER BY at
LIMIT 1 OFFSET {number:UInt32} - 1
