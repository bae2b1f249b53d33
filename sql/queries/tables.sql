-- Which tables and views does the database have, and how many bytes are in each?
SELECT name, ifNull(total_bytes_uncompressed, 0) AS bytes
FROM system.tables
WHERE database = currentDatabase()
ORDER BY name
