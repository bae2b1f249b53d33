-- What is the last snapshot of a family before an instant that a job or backfill completed, and what is its version?
-- Rows are read in the order of the sort key, backwards and without reading ahead.
SELECT at, version
FROM snapshot
WHERE family = {family:String}
  AND at < toDateTime({before:UInt32}, 'UTC')
  AND kind IN ('job', 'backfill')
ORDER BY family DESC, at DESC, kind DESC
LIMIT 1
SETTINGS max_threads = 1, max_block_size = 256, optimize_read_in_order = 1, read_in_order_use_buffering = 0
