-- Which values were observed in a range that is too short for cells, or not aligned to them?
SELECT asset_id, observed_at, value, version AS rank
FROM observation
WHERE history = {history:String}
  AND asset_id IN {ids:Array(String)}
  AND observed_at >= toDateTime({raw_from:UInt32}, 'UTC')
  AND observed_at < toDateTime({until:UInt32}, 'UTC')
