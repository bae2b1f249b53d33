-- Which snapshots of a family did jobs and backfills complete between two instants, both included?
SELECT *
FROM snapshot FINAL
WHERE family = {family:String}
  AND at BETWEEN toDateTime({start:UInt32}, 'UTC') AND toDateTime({end:UInt32}, 'UTC')
  AND kind IN ('job', 'backfill')
ORDER BY at, version
