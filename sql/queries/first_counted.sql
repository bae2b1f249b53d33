-- When is the first snapshot with rows in tables that the ledger counts? The end of time if there is none.
SELECT toUnixTimestamp(if(count() = 0, toDateTime(4294967295, 'UTC'), min(at))) AS first
FROM snapshot
WHERE notEmpty(tables)
