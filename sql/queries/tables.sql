-- Which tables and views does the database have, and how many bytes has each on the disk?
SELECT name, ifNull(total_bytes, 0) AS bytes
FROM system.tables
WHERE database = currentDatabase()
ORDER BY name
