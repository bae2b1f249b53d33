-- What is the last snapshot of a family before an instant that a job or backfill completed, and what is its version?
SELECT at, version
FROM snapshot
WHERE family = {family:String}
  AND at < toDateTime({before:UInt32}, 'UTC')
  AND kind IN ('job', 'backfill')
ORDER BY at DESC
LIMIT 1
SETTINGS max_threads = 1
