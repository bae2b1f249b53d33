-- The shards of a cluster, in order: the weight of each, and its servers.
SELECT arrayStringConcat(groupArray(shard), ' | ') AS shards
FROM
(
    SELECT concat(toString(any(shard_weight)), ' ', arrayStringConcat(arraySort(groupArray(server)), ' ')) AS shard
    FROM (SELECT shard_num, shard_weight, concat(host_name, ':', toString(port)) AS server
          FROM system.clusters
          WHERE cluster = {cluster:String})
    GROUP BY shard_num
    ORDER BY shard_num
)
