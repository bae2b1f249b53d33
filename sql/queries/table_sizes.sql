-- How many rows does each table have, repeated ones included but once for all copies, and how many bytes on the disks of all
-- servers? The parts of a table, `<name>_local`, count as the table; what is staged for it is apart.
WITH
    (
        SELECT groupArray(shard_num)
        FROM (SELECT shard_num FROM system.clusters WHERE cluster = {cluster:String} ORDER BY shard_num, replica_num)
    ) AS shards
SELECT
    concat(extract(stored, '^(.+?)(?:_staging_.*|_local)?$'), if(position(stored, '_staging_') > 0, ', staged', '')) AS table,
    sum(rows) AS rows,
    sum(bytes) AS bytes
FROM
(
    SELECT stored, if(endsWith(stored, '_local'), sum(rows), max(rows)) AS rows, sum(bytes) AS bytes
    FROM
    (
        SELECT stored, shards[server] AS shard, max(rows) AS rows, sum(bytes) AS bytes
        FROM
        (
            SELECT table AS stored, {server} AS server, sum(rows) AS rows, sum(bytes_on_disk) AS bytes
            FROM {from}
            WHERE database = {database:String}
              AND active
            GROUP BY stored, server
        )
        GROUP BY stored, shard
    )
    GROUP BY stored
)
GROUP BY table
ORDER BY bytes DESC, table
{answering}
