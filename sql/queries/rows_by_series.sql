-- How many rows does each series of a history have in a span of time? Corrected rows count until they are merged.
SELECT asset_id, count() AS rows
FROM observation
WHERE history = {history:String}
  AND observed_at >= toDateTime({since:UInt32}, 'UTC')
  AND observed_at < toDateTime({until:UInt32}, 'UTC')
GROUP BY asset_id
