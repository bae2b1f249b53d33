-- Which staging tables does a rewrite have?
SELECT name
FROM system.tables
WHERE database = currentDatabase()
  AND endsWith(replaceOne(name, '_removed', ''), {suffix:String})
