-- Which staging tables belong to no unfinished rewrite? Each is named after a table of ours.
SELECT name
FROM system.tables
WHERE database = currentDatabase()
  AND match(name, '^[a-z_]+_staging_[0-9]+(_removed)?$')
  AND splitByString('_staging_', name)[1] IN (SELECT name FROM system.tables WHERE database = currentDatabase())
  AND toUInt64OrZero(extract(name, '_staging_([0-9]+)')) NOT IN
    (SELECT version FROM rewrite GROUP BY version HAVING max(finished) = 0)
