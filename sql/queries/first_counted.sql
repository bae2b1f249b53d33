-- When did the ledger first count rows by table? The end of time if it never did.
SELECT toUnixTimestamp(if(count() = 0, toDateTime(4294967295, 'UTC'), min(at))) AS first
FROM snapshot
WHERE notEmpty(tables)
