-- How many events did an address have up to an instant? That is the number of the last one.
SELECT number AS count
FROM account_event
WHERE address = {address:String}
  AND at <= toDateTime({until:UInt32}, 'UTC')
ORDER BY address DESC, at DESC, uuid DESC, version DESC
LIMIT 1
SETTINGS max_threads = 1, max_block_size = 256, optimize_read_in_order = 1, read_in_order_use_buffering = 0
