-- Copies a store into a new one with more shards, because rows do not move between shards. Tested from two shards to
-- three. With replicas, wait after step 4 until system.replication_queue is empty on every server.
--
-- 1. Add the larger cluster, with its own name, to <remote_servers> of all its servers. It may include old servers.
-- 2. Stop schedulers, and commands that write. `serve` may continue with the old store.
-- 3. Set ANALYTICS_CLICKHOUSE_CLUSTER to the new name and ANALYTICS_CLICKHOUSE_DATABASE to a new database, here `grown`. Run
--    `analytics-service migrate` of the version that the old store has.
-- 4. On a server of the new cluster, run this query with your own names in its first lines. Then run the statements in its
--    answer, in order: the ledger comes last, so half a copy shows nothing. A failed statement may be run again.
WITH
    'old.example:9000' AS old_server,
    'analytics' AS old_database,
    'grown' AS new_database,
    'analytics' AS user,
    'PASSWORD' AS password
SELECT format(
    'INSERT INTO {0}.{2} SELECT * FROM remote(\'{3}\', \'{1}\', \'{2}\', \'{4}\', \'{5}\') SETTINGS max_partitions_per_insert_block = 0, distributed_foreground_insert = 1, select_sequential_consistency = 1;',
    new_database, old_database, name, old_server, user, password
)
FROM system.tables
WHERE database = new_database
    AND engine NOT LIKE '%View'
    AND name NOT LIKE '%\_local'
    AND name NOT IN ('schema_migration', 'snapshot_head')
ORDER BY name = 'snapshot', name;
-- 5. Start schedulers and each `serve` with the new settings. Drop the old database once all is well.
--
-- If servers of the cluster were only renamed, the store refuses them, too. To record the new names, run on all servers
-- DELETE FROM analytics.schema_migration WHERE number = 65535, then `analytics-service migrate`.
