-- Which tables does a run have in staging, of which engine, and with which comment? Views come first, because tables
-- that they read cannot go before them.
SELECT name, engine, comment
FROM system.tables
WHERE database = currentDatabase()
  AND endsWith(name, {suffix:String})
ORDER BY engine != 'MaterializedView', name
