-- The rows of a view in a span of time, in types that all readers of its formats know. Sorting uses the disk of ClickHouse
-- rather than more memory.
SELECT {columns}
FROM {view} AS v
WHERE {time} >= toDateTime({since:UInt32}, 'UTC') AND {time} < toDateTime({until:UInt32}, 'UTC')
ORDER BY {order}
SETTINGS
    max_threads = 2,
    max_bytes_before_external_sort = 268435456
