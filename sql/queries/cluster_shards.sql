-- How many shards does a cluster have? None if the server does not know it.
SELECT uniqExact(shard_num) AS shards
FROM system.clusters
WHERE cluster = {cluster:String}
