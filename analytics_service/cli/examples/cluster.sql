-- How the servers of a cluster come and go, under a store of the database `analytics`. The cluster has a name in
-- ANALYTICS_CLICKHOUSE_CLUSTER, and its servers the macros `shard` and `replica`. Put your own names in place of these:
-- `main` for the cluster, '2' for a shard, 'b' for a replica of it.
--
-- What was run: one more shard, from two to three; and the statement for tables of a new server, without replication.
-- All else follows ClickHouse's documentation (SYSTEM statements, ReplicatedMergeTree, ON CLUSTER), and was not run.

-- Before the first `migrate`
--   ClickHouse Keeper on three nodes, and in each shard three replicas, which reach each other's interserver port. In
--   <remote_servers>, a <secret> has queries run on all servers as the user who asks; without it, <user> and <password> of
--   each server say as whom, by default `default`, and people's limits do not hold there. The service's user also needs
--   SYSTEM DROP REPLICA for what follows, and with table_engines_require_grant TABLE ENGINE ON Distributed.

-- Another version of ClickHouse
--   One server after the other, once the query of step 4 below is 0 on the one before. Versions may differ meanwhile, by a year at most.
--   From 26.2 to June 2026 an INSERT without a majority fails only after 20 seconds.

-- One more replica of shard 2
--   1. Give the new server its macros, and ClickHouse Keeper, the user and <remote_servers> of the others, with itself in its
--      shard. Start no import and no correction before all is done.
--   2. On another server of its shard:
SELECT create_table_query
FROM system.tables
WHERE database = 'analytics' AND engine != 'View' AND position(name, '_staging_') = 0
ORDER BY engine = 'MaterializedView'
SETTINGS show_table_uuid_in_table_create_query_if_not_nil = 1;
--   3. On the new server, this, and each statement that the query of 2 answers, as it is: copies of a table find each other
--      by its UUID. (A database of the engine Replicated has its tables by itself, once it is created as on the others:
--      ENGINE = Replicated, with their path, '{shard}' and '{replica}'.)
CREATE DATABASE analytics;
--   4. Rows come by themselves. On the new server, this is 0 once all are there:
SELECT sum(queue_size) + sum(log_max_index - log_pointer + 1) FROM system.replicas WHERE database = 'analytics';
--   5. Add it to <remote_servers> of the other servers. `analytics-service migrate` compares the tables of all, and makes the
--      views; `status` says how many servers answer.
--   6. Unless users are in Keeper, people's are not there. On any server `DROP USER name ON CLUSTER main`, and then
--      `analytics-service migrate --researcher name`, which makes a new password.

-- A lost server, b of shard 2
--   Until it is dropped, it counts among the copies of which each INSERT waits for a majority. On another server of its
--   shard, once its session with Keeper has ended (30 seconds; before, error 305). The second statement is for clusters of
--   several shards, on any server: tables that all servers have a copy of know it by that name. The third is for a database
--   of the engine Replicated.
SYSTEM DROP REPLICA 'b' FROM DATABASE analytics;
SYSTEM DROP REPLICA '2-b' FROM DATABASE analytics;
SYSTEM DROP DATABASE REPLICA 'b' FROM SHARD '2' FROM DATABASE analytics;
--   Then take it out of <remote_servers>, or add an empty server in its place, as above. If its shard has no other replica,
--   its rows are lost: restore a backup into another database.
--   If Keeper lost all, servers still have their rows, and tables are read-only: on each server and for each table
--   SYSTEM RESTART REPLICA, and then SYSTEM RESTORE REPLICA. Users in Keeper, and statements that wait for a server, are gone.

-- One more shard
--   Rows do not move by themselves, so a cluster whose shards, their order or weights are not those that the store was made
--   for is refused by all commands, and requests that need its rows answer 503. So name the larger cluster otherwise:
--   1. Add it to <remote_servers> of all servers, beside the present one.
--   2. Stop schedulers and importers, and wait until they have ended; `serve` may go on. What one still writes is in no backup.
--   3. `analytics-service backup FILE`
--   4. Set ANALYTICS_CLICKHOUSE_CLUSTER to the new name, and ANALYTICS_CLICKHOUSE_DATABASE to that of a new database.
--   5. `analytics-service restore FILE`
--   6. Start schedulers and each `serve` anew, with these settings. Drop the old database once all is well.
