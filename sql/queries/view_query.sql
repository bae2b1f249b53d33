-- What does a view select?
SELECT as_select AS query
FROM system.tables
WHERE database = currentDatabase()
  AND name = {view:String}
