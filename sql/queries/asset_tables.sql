-- Which tables of snapshots name assets, and in which column? Some name the protocol's own.
SELECT table, name AS column
FROM system.columns
WHERE database = currentDatabase()
  AND name IN ('asset_id', 'hnative', 'ptoken')
  AND table IN ({tables:Array(String)})
ORDER BY table, name
