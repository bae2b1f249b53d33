-- Which staging tables are some hours old and belong to no unfinished run? Each is named after a table of ours. Views
-- come first, because the tables that they read cannot be dropped before them.
SELECT name
FROM system.tables
WHERE database = currentDatabase()
  AND match(name, '^[a-z_]+_staging_[0-9]+$')
  AND splitByString('_staging_', name)[1] IN (SELECT name FROM system.tables WHERE database = currentDatabase())
  AND metadata_modification_time <= now() - toIntervalHour({hours:UInt32})
  AND toUInt64OrZero(splitByString('_staging_', name)[2]) NOT IN
    (SELECT version FROM publication GROUP BY version HAVING max(finished) = 0
     UNION ALL
     SELECT version FROM append_run GROUP BY version HAVING max(finished) = 0)
ORDER BY engine != 'MaterializedView'
