-- At which instants do the assets in a range of ids have observations, within a range of time? Bounds are inclusive.
SELECT asset_id, groupArray(toUnixTimestamp(observed_at)) AS instants
FROM {table:Identifier}
WHERE asset_id BETWEEN {first_asset:String} AND {last_asset:String}
  AND observed_at BETWEEN toDateTime({start:UInt32}, 'UTC') AND toDateTime({end:UInt32}, 'UTC')
GROUP BY asset_id
