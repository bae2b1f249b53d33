-- Which snapshot of a family did a job or backfill complete last before an instant?
SELECT at
FROM snapshot
WHERE family = {family:String}
  AND at < toDateTime({before:UInt32}, 'UTC')
  AND kind IN ('job', 'backfill')
ORDER BY at DESC
LIMIT 1
