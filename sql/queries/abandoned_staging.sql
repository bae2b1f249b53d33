-- Which twins of some tables were made so long ago that an import which still filled them would be a wonder? Views come
-- first.
SELECT name
FROM system.tables
WHERE database = currentDatabase()
  AND match(name, '^[a-z_]+_staging_[0-9]+$')
  AND splitByString('_staging_', name)[1] IN {tables:Array(String)}
  AND metadata_modification_time <= now() - toIntervalHour({hours:UInt32})
ORDER BY engine != 'MaterializedView'
