-- Which events does a source have later than an instant, and not later than another, oldest first?
SELECT {columns}
FROM {database:Identifier}.{view:Identifier} AS v
WHERE v.at > toDateTime({after:UInt32}, 'UTC') AND v.at <= toDateTime({until:UInt32}, 'UTC')
ORDER BY v.at, v.id
SETTINGS max_result_bytes = 268435456
