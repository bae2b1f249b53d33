-- Which values were observed in those quarter hours of a range in which a bucket ends? Cells have only the last of each.
SELECT asset_id, observed_at, value, version AS rank
FROM observation
WHERE history = {history:String}
  AND asset_id IN {ids:Array(String)}
  AND observed_at < toDateTime({until:UInt32}, 'UTC')
  AND toUnixTimestamp(toStartOfFifteenMinutes(observed_at)) IN {edge_quarters:Array(UInt32)}
