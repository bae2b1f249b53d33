-- Which snapshots of a family did jobs and backfills complete in a range [start, end)?
SELECT *
FROM snapshot FINAL
WHERE family = {family:String}
  AND at >= toDateTime({start:UInt32}, 'UTC') AND at < toDateTime({end:UInt32}, 'UTC')
  AND kind IN ('job', 'backfill')
ORDER BY at, version
