-- What is the last snapshot of a family before an instant that a job or backfill completed, what is its version, and up to
-- when did its source say that it had all events?
SELECT at, version, complete_until
FROM snapshot
WHERE family = {family:String}
  AND at < toDateTime({before:UInt32}, 'UTC')
  AND kind IN ('job', 'backfill')
ORDER BY at DESC, version DESC
LIMIT 1
SETTINGS max_threads = 1
