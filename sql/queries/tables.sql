-- Which tables and views does the database have, by which columns is each sorted, and how many bytes are in it?
SELECT name, sorting_key, ifNull(total_bytes_uncompressed, 0) AS bytes
FROM system.tables
WHERE database = currentDatabase()
ORDER BY name
