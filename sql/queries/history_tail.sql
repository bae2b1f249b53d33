-- Which values were observed in a range too short or too odd for cells?
SELECT asset_id, observed_at, {value:Identifier} AS value, version AS rank
FROM {table:Identifier}
WHERE asset_id IN {ids:Array(String)}
  AND observed_at >= toDateTime({raw_from:UInt32}, 'UTC')
  AND observed_at < toDateTime({until:UInt32}, 'UTC')
