-- Which rows does a source's view have of its newest instant, at or before another?
SELECT {columns}
FROM {database:Identifier}.{view:Identifier} AS v
WHERE v.observed_at =
(
    SELECT max(v.observed_at)
    FROM {database:Identifier}.{view:Identifier} AS v
    WHERE v.observed_at <= toDateTime({at:UInt32}, 'UTC')
)
ORDER BY ALL
SETTINGS max_result_bytes = {most_bytes}
