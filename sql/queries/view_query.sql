-- What is the query of a materialized view?
SELECT as_select AS query
FROM system.tables
WHERE database = currentDatabase()
  AND name = {view:String}
