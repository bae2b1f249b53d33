-- Which servers does a cluster have, in order, and which of them answer?
SELECT
    shard_num AS shard,
    concat(host_name, ':', toString(port)) AS address,
    number IN (SELECT {server} FROM {from}) AS up
FROM
(
    SELECT *, row_number() OVER (ORDER BY shard_num, replica_num) AS number
    FROM system.clusters
    WHERE cluster = {cluster:String}
)
ORDER BY number
{answering}
