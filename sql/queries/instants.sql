-- At which instants do the assets between two ids have observations of a history, within a range of time? All bounds are
-- inclusive.
SELECT asset_id, groupArray(toUnixTimestamp(observed_at)) AS instants
FROM observation
WHERE history = {history:String}
  AND asset_id BETWEEN {first_asset:String} AND {last_asset:String}
  AND observed_at BETWEEN toDateTime({start:UInt32}, 'UTC') AND toDateTime({end:UInt32}, 'UTC')
GROUP BY asset_id
