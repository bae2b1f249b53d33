-- How the tables are spread over servers.

-- name: read_table_engines
-- Which engine does a database have, and which its table of observations, if there are any?
SELECT
    (SELECT engine FROM system.databases WHERE name = {database:String}) AS engine,
    (SELECT engine FROM system.tables WHERE database = {database:String} AND name = 'observation') AS table_engine

-- name: count_shards
-- How many shards does a cluster have? None if the server does not know it.
SELECT uniqExact(shard_num) AS shards
FROM system.clusters
WHERE cluster = {cluster:String}

-- name: read_shards
-- Which shards does a cluster have, in order: the weight of each, and its servers? And which are recorded?
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
