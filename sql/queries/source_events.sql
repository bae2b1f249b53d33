-- Which events does a source have from an instant on and before another, oldest first?
SELECT {columns}
FROM {database:Identifier}.{view:Identifier} AS v
WHERE v.at >= toDateTime({start:UInt32}, 'UTC') AND v.at < toDateTime({end:UInt32}, 'UTC')
ORDER BY v.at, v.id
SETTINGS max_result_bytes = 268435456
