-- Of which series and seconds are there observations of some histories at or after an instant?
SELECT DISTINCT history, asset_id, toUnixTimestamp(observed_at) AS second
FROM observation
WHERE history IN {histories:Array(String)}
  AND observed_at >= toDateTime({since:UInt32}, 'UTC')
