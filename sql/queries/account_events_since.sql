-- Which events did the given addresses have at or after an instant?
SELECT {columns}
FROM account_event FINAL
WHERE address IN {addresses:Array(String)}
  AND at >= toDateTime({since:UInt32}, 'UTC')
  AND NOT gone
ORDER BY address, at, uuid
