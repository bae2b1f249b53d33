-- When was an event, of an address or of any? The index on uuid leaves few rows to read. One that has gone has the place
-- where it was, so that a list goes on after it.
SELECT at
FROM account_event
WHERE {whose}
  AND at < toDateTime({end:UInt32}, 'UTC')
  AND uuid = {uuid:String}
ORDER BY gone, version DESC
LIMIT 1
SETTINGS max_threads = 1, max_block_size = 256
