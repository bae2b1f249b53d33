-- Which events that are summed happened later than an instant?
SELECT id, kind, asset_id, toUnixTimestamp(at) AS second, usd, toBool(brought_by != 'source') AS of_file
FROM event FINAL
WHERE kind IN {kinds:Array(String)}
  AND at > toDateTime({since:UInt32}, 'UTC')
  AND NOT gone
ORDER BY at, id
