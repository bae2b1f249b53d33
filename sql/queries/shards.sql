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
