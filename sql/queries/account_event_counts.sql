-- How many events did each of the given addresses have up to an instant? That is the number of the last one.
SELECT address, max(number) AS count
FROM account_event
WHERE address IN {addresses:Array(String)}
  AND at <= toDateTime({until:UInt32}, 'UTC')
GROUP BY address
