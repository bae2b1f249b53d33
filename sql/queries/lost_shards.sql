-- How many shards of a cluster have no server but some (host and port)?
SELECT count() AS lost
FROM
(
    SELECT shard_num
    FROM system.clusters
    WHERE cluster = {cluster:String}
    GROUP BY shard_num
    HAVING countIf(concat(host_name, ':', toString(port)) NOT IN {servers:Array(String)}) = 0
)
