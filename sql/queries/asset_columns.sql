-- Which columns hold asset ids? Cells repeat those of their tables, and reading all positions would take long.
SELECT table, name AS column
FROM system.columns
WHERE database = currentDatabase()
  AND (name = 'asset_id' AND type = 'LowCardinality(String)' OR table = 'asset' AND name = 'id')
  AND NOT match(table, '_(cell|view)$|_staging_')
ORDER BY table
