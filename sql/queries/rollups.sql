-- Which of some tables have a rollup, and what is the query of the view that feeds it?
SELECT name AS view, as_select AS query
FROM system.tables
WHERE database = currentDatabase()
  AND name IN {views:Array(String)}
