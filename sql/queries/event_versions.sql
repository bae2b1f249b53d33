-- Which row is the last of each event of some addresses at some seconds?
SELECT address, at, uuid, max(version) AS version
FROM account_event
WHERE address IN {addresses:Array(String)}
  AND toUnixTimestamp(at) IN {seconds:Array(UInt32)}
GROUP BY address, at, uuid
