-- What is there of a series from the last observation before a second to the first one after another?
SELECT toUnixTimestamp(observed_at) AS observed_at, value
FROM observation FINAL
WHERE history = {history:String}
  AND asset_id = {asset_id:String}
  AND observation.observed_at >=
  (
      SELECT max(observed_at)
      FROM observation
      WHERE history = {history:String}
        AND asset_id = {asset_id:String}
        AND observed_at < toDateTime({start:UInt32}, 'UTC')
  )
  AND observation.observed_at <=
  (
      SELECT ifNull(minOrNull(observed_at), toDateTime(4294967295, 'UTC'))
      FROM observation
      WHERE history = {history:String}
        AND asset_id = {asset_id:String}
        AND observed_at > toDateTime({end:UInt32}, 'UTC')
  )
ORDER BY observed_at
