-- Which tables are left in staging since some hours, by runs that have not announced a rewrite or have finished it? Such
-- a table is named after one of ours. Views come first, because tables that they read cannot go before them.
SELECT name
FROM system.tables
WHERE database = currentDatabase()
  AND match(name, '^[a-z_]+_staging_[0-9]+$')
  AND splitByString('_staging_', name)[1] IN (SELECT name FROM system.tables WHERE database = currentDatabase())
  AND metadata_modification_time <= now() - toIntervalHour({hours:UInt32})
  AND toUInt64OrZero(splitByString('_staging_', name)[2]) NOT IN
    (SELECT version FROM publication GROUP BY version HAVING max(finished) = 0)
ORDER BY engine != 'MaterializedView'
