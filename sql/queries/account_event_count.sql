-- How many events were there before an instant, of an address or of all?
SELECT count() AS count
FROM account_event FINAL
WHERE {whose}
  AND at >= toDateTime({start:UInt32}, 'UTC') AND at < toDateTime({end:UInt32}, 'UTC')
  AND NOT gone
  AND (empty({actions:Array(String)}) OR action IN {actions:Array(String)})
  AND (empty({assets:Array(String)}) OR asset_id IN {assets:Array(String)})
