-- How many rows does each series of a table have in a span of time? Corrected rows count until they are merged.
SELECT asset_id, count() AS rows
FROM {table:Identifier}
WHERE observed_at >= toDateTime({since:UInt32}, 'UTC') AND observed_at < toDateTime({until:UInt32}, 'UTC')
GROUP BY asset_id
