-- At which instants do the assets between two ids have observations of a history, in a range [start, end)?
-- Both ids are included.
SELECT asset_id, groupArray(toUnixTimestamp(observed_at)) AS instants
FROM observation
WHERE history = {history:String}
  AND asset_id BETWEEN {first_asset:String} AND {last_asset:String}
  AND observed_at >= toDateTime({start:UInt32}, 'UTC') AND observed_at < toDateTime({end:UInt32}, 'UTC')
GROUP BY asset_id
