-- What are the UUIDs of some tables?
SELECT name, toString(uuid) AS uuid
FROM system.tables
WHERE database = currentDatabase() AND name IN {names:Array(String)}
ORDER BY name
