-- What is the greatest version of a completed run, a definition or a run that has staged something? 0 in an empty store.
SELECT max(version) AS version
FROM
(
    SELECT version FROM snapshot_head
    UNION ALL
    SELECT version FROM asset
    UNION ALL
    SELECT toUInt64OrZero(splitByString('snapshot_staging_', name)[2])
    FROM system.tables
    WHERE database = currentDatabase() AND startsWith(name, 'snapshot_staging_')
)
SETTINGS max_threads = 1
