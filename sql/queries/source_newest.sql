-- What is the newest row of each key in a source's view, at or before an instant?
SELECT {columns}
FROM {database:Identifier}.{view:Identifier} AS v
WHERE ({key}, v.observed_at) IN
(
    SELECT {key}, max(v.observed_at)
    FROM {database:Identifier}.{view:Identifier} AS v
    WHERE v.observed_at <= toDateTime({at:UInt32}, 'UTC')
    GROUP BY {key}
)
ORDER BY ALL
LIMIT 1 BY {key}
SETTINGS max_result_bytes = 268435456
