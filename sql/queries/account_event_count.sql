-- How many events did an address have up to an instant?
SELECT count() AS count
FROM account_event FINAL
WHERE address = {address:String}
  AND at <= toDateTime({until:UInt32}, 'UTC')
  AND NOT gone
