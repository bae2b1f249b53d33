-- Which prices of some assets were observed at some instants?
SELECT asset_id, toUnixTimestamp(observed_at) AS observed_at, argMax(price, version) AS price
FROM price
WHERE asset_id IN {ids:Array(String)}
  AND observed_at IN (SELECT toDateTime(arrayJoin({seconds:Array(UInt32)}), 'UTC'))
GROUP BY asset_id, observed_at
