-- Which of the given views exist, and which query does each run? They feed rollups.
SELECT name AS view, as_select AS query
FROM system.tables
WHERE database = currentDatabase()
  AND name IN {views:Array(String)}
