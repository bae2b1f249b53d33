-- Which parts of tables has ClickHouse found broken, and when? It has put them aside, and answers without them, unless it
-- still had those that they were merged from: then `restored` is true. Parts keep the numbers of their blocks of rows as
-- they are merged, but numbers are given anew after a loss, so only parts from before count.
SELECT
    table AS table_name,
    assumeNotNull(d.partition_id) AS partition,
    d.name AS name,
    toUnixTimestamp(d.modification_time) AS found_at,
    sumIf(
        p.max_block_number - p.min_block_number + 1,
        p.modification_time <= d.modification_time
            AND p.min_block_number >= d.min_block_number AND p.max_block_number <= d.max_block_number
    ) > any(d.max_block_number - d.min_block_number) AS restored
FROM system.detached_parts AS d
LEFT JOIN
(
    SELECT table, partition_id, min_block_number, max_block_number, modification_time
    FROM system.parts
    WHERE database = {database:String} AND active
) AS p ON p.table = d.table AND p.partition_id = d.partition_id
WHERE d.database = {database:String}
  AND startsWith(assumeNotNull(d.reason), 'broken')
  AND position(table, '_staging_') = 0
GROUP BY table_name, partition, name, found_at
ORDER BY table_name, partition, name
SETTINGS join_use_nulls = 1
