-- Which tables have cells, and which of their columns do these sum up?
SELECT table, name AS value
FROM system.columns
WHERE database = currentDatabase()
  AND concat(table, '_cell') IN (SELECT name FROM system.tables WHERE database = currentDatabase())
  AND startsWith(type, 'Decimal')
ORDER BY table
