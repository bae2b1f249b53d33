-- Which events that are summed happened at or after an instant?
SELECT id, kind, asset_id, toUnixTimestamp(at) AS second, usd
FROM event FINAL
WHERE kind IN {kinds:Array(String)}
  AND at >= toDateTime({since:UInt32}, 'UTC')
ORDER BY at, id
