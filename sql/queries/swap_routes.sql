-- Which routes does a swap contract have at a snapshot?
SELECT source, targets
FROM swap_route
WHERE observed_at = toDateTime({at:UInt32}, 'UTC')
  AND contract = {contract:String}
ORDER BY source, version DESC
LIMIT 1 BY source
