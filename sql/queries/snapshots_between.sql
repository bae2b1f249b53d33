-- Which snapshots of a family did jobs and backfills complete from one instant to another, both inclusive?
SELECT DISTINCT at
FROM snapshot
WHERE family = {family:String}
  AND at >= toDateTime({start:UInt32}, 'UTC')
  AND at <= toDateTime({end:UInt32}, 'UTC')
  AND kind IN ('job', 'backfill')
ORDER BY at
