-- How many rows does each table have, repeated ones included, and how many bytes on disk?
SELECT table, sum(rows) AS rows, sum(bytes_on_disk) AS bytes
FROM system.parts
WHERE database = currentDatabase()
  AND active
GROUP BY table
ORDER BY bytes DESC, table
