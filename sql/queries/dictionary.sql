-- What does each table and each of its columns mean?
SELECT t.name AS table, t.comment AS table_comment, c.name AS column, c.type AS type, c.comment AS comment
FROM system.tables AS t
INNER JOIN system.columns AS c ON c.database = t.database AND c.table = t.name
WHERE t.database = currentDatabase()
  AND t.engine != 'MaterializedView'
ORDER BY table, c.position
