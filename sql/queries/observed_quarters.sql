-- Which observations does each quarter hour of a range have? A part of differing_cells.
SELECT history, asset_id, toStartOfFifteenMinutes(observed_at) AS begins_at, toInt64(1) AS observations
FROM observation FINAL
WHERE observed_at >= toDateTime({since:UInt32}, 'UTC') AND observed_at < toDateTime({until:UInt32}, 'UTC')
