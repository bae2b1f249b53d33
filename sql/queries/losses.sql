-- Losses: rollups and snapshots compared with their inputs, and broken parts.

-- name: find_first_counted
-- The first snapshot, observation or rollup; the end of time if there is none.
SELECT least(
    (SELECT toUnixTimestamp(if(count() = 0, toDateTime(4294967295, 'UTC'), min(at))) FROM snapshot WHERE notEmpty(tables)),
    (SELECT toUnixTimestamp(if(count() = 0, toDateTime(4294967295, 'UTC'), min(observed_at))) FROM observation),
    (SELECT toUnixTimestamp(if(count() = 0, toDateTime(4294967295, 'UTC'), min(start))) FROM rollup WHERE width = '15min')
) AS first

-- name: find_missing_rows
-- The first and the last complete snapshot in a range [start, end) for which a table has fewer rows than the ledger
-- counts, if any. Later rewrites, and rows that were sent twice, may add rows.
SELECT '{dataset}' AS dataset, '{table}' AS what, toUnixTimestamp(min(at)) AS first, toUnixTimestamp(max(at)) AS until
FROM
(
    SELECT at, max(version) AS version, argMax(table_rows[indexOf(tables, '{table}')], s.version) AS expected
    FROM snapshot AS s
    WHERE dataset = '{dataset}'
      AND kind IN ('job', 'backfill')
      AND at >= toDateTime({start:UInt32}, 'UTC') AND at < toDateTime({end:UInt32}, 'UTC')
    GROUP BY at
) AS listed
LEFT JOIN
(
    SELECT observed_at, version, count() AS present
    FROM {table}
    WHERE observed_at >= toDateTime({start:UInt32}, 'UTC') AND observed_at < toDateTime({end:UInt32}, 'UTC')
    GROUP BY observed_at, version
) AS stored ON listed.at = stored.observed_at AND listed.version = stored.version
WHERE present < expected
HAVING count() > 0

-- name: union_queries
-- The rows of several queries.
{queries}

-- name: compare_rollups
-- The series whose closed rollups of a month count other observations than the next smaller width, or than the table of
-- observations: from the start of the first of these rollups to the end of the last.
SELECT
    toString(history) AS history,
    toString(asset_id) AS asset_id,
    toUnixTimestamp(min(begins_at)) AS first,
    toUnixTimestamp(max(ends_at)) AS until
FROM
(
    SELECT history, asset_id, cell.1 AS begins_at, cell.2 AS ends_at
    FROM
    (
        SELECT history, asset_id, toStartOfFifteenMinutes(observed_at) AS start, (start, start + 900, toInt64(1)) AS cell
        FROM observation FINAL
        WHERE observed_at >= toDateTime({start:UInt32}, 'UTC') AND observed_at < toDateTime({end:UInt32}, 'UTC')

        UNION ALL

        SELECT history, asset_id, start, arrayJoin(arrayConcat(
            [(start, multiIf(width = '15min', start + 900, width = 'day', start + 86400, addMonths(start, 1)), -rows)],
            multiIf(
                width = '15min', [(toStartOfDay(start), toStartOfDay(start) + 86400, rows)],
                width = 'day', [(month, addMonths(month, 1), rows)],
                []))) AS cell
        FROM
        (
            SELECT *, toInt64(count + unknown) AS rows, toDateTime(toStartOfMonth(start), 'UTC') AS month
            FROM rollup FINAL
            WHERE start >= toDateTime({start:UInt32}, 'UTC') AND start < toDateTime({end:UInt32}, 'UTC')
        )
    )
    GROUP BY history, asset_id, begins_at, ends_at
    HAVING sum(cell.3) != 0
)
WHERE toUnixTimestamp(ends_at) <= transform(toString(history), {histories:Array(String)}, {ends:Array(UInt32)}, toUInt32(0))
GROUP BY history, asset_id
SETTINGS do_not_merge_across_partitions_select_final = 1

-- name: find_observed_after
-- The first observation of each series at or after a second of its own, if any.
SELECT toString(o.history) AS history, toString(o.asset_id) AS asset_id, min(toUnixTimestamp(observed_at)) AS next
FROM observation AS o
INNER JOIN
(
    SELECT arrayJoin(arrayZip({histories:Array(String)}, {ids:Array(String)}, {ends:Array(UInt32)})) AS s
) AS series ON toString(o.history) = s.1 AND toString(o.asset_id) = s.2
WHERE observed_at >= toDateTime(s.3, 'UTC')
GROUP BY history, asset_id

-- name: find_all_observed_after
-- The instant by which every series of a history that has observations after a second has one. 0 if none has.
SELECT toUnixTimestamp(max(first_at)) AS next
FROM
(
    SELECT min(observed_at) AS first_at
    FROM observation
    WHERE history = {history:String} AND observed_at > toDateTime({after:UInt32}, 'UTC')
    GROUP BY asset_id
)

-- name: find_written_until
-- The newest observation of each dataset at a moment.
SELECT toString(dataset) AS name, toUnixTimestamp(max(last_observed_at)) AS until
FROM snapshot AS s
WHERE kind IN ('job', 'backfill', 'import')
  AND s.version < ({moment:UInt32} + 1) * 1000000000
GROUP BY name

-- name: list_broken_parts
-- The parts of tables that ClickHouse found broken and detached, and when. `restored`: the parts that it was merged
-- from are active instead. Merged parts keep the numbers of their blocks of rows, but a loss resets the numbers, so
-- only older parts count.
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
