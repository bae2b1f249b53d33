-- How a cluster stores the tables.

-- name: read_table_engines
-- The engine of a database, and of its table of observations, if they exist.
SELECT
    (SELECT engine FROM system.databases WHERE name = {database:String}) AS engine,
    (SELECT engine FROM system.tables WHERE database = {database:String} AND name = 'observation') AS table_engine

-- name: count_shards
-- The number of shards of a cluster; 0 if the server does not know it.
SELECT uniqExact(shard_num) AS shards
FROM system.clusters
WHERE cluster = {cluster:String}

-- name: read_shards
-- The shards of a cluster, in order, each with its weight and servers, and the recorded shards.
SELECT
    (
        SELECT arrayStringConcat(groupArray(shard), ' | ')
        FROM
        (
            SELECT concat(toString(any(shard_weight)), ' ', arrayStringConcat(arraySort(groupArray(server)), ' ')) AS shard
            FROM (SELECT shard_num, shard_weight, concat(host_name, ':', toString(port)) AS server
                  FROM system.clusters
                  WHERE cluster = {cluster:String})
            GROUP BY shard_num
            ORDER BY shard_num
        )
    ) AS shards,
    (SELECT name FROM schema_migration FINAL WHERE number = {number:UInt16}) AS recorded
