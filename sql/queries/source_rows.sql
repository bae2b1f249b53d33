-- Which rows does a source's view have that says nothing about time?
SELECT {columns}
FROM {database:Identifier}.{view:Identifier} AS v
ORDER BY ALL
SETTINGS max_result_bytes = {most_bytes}
