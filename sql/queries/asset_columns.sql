-- Which columns hold asset ids? Cells repeat those of their tables, and reading all positions would take long.
SELECT table, name AS column
FROM system.columns
WHERE database = currentDatabase()
  AND (name = 'asset_id' AND type = 'LowCardinality(String)' OR table = 'asset' AND name = 'id')
  AND NOT match(table, '^cell$|_view$|_staging_|_local$')
  AND table NOT IN (SELECT name FROM system.tables WHERE database = currentDatabase() AND engine = 'View')
ORDER BY table
