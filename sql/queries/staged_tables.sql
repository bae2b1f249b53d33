-- Which tables does a run have in staging?
SELECT name
FROM system.tables
WHERE database = currentDatabase()
  AND endsWith(name, {suffix:String})
  AND engine != 'MaterializedView'
ORDER BY name
