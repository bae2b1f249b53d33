-- What the store has lost: rollups and snapshots compared with what they are made from, and broken parts.

-- name: find_first_counted
-- When is the first snapshot with rows in tables that the ledger counts? The end of time if there is none.
SELECT toUnixTimestamp(if(count() = 0, toDateTime(4294967295, 'UTC'), min(at))) AS first
FROM snapshot
WHERE notEmpty(tables)

-- name: find_missing_rows
-- Of which complete snapshots in a range does a table have fewer rows than the ledger counts? What rewrites have added to
-- a snapshot since, and rows that were sent twice, may make them more.
SELECT '{dataset}' AS dataset, '{table}' AS what, toUnixTimestamp(at) AS at
FROM
(
    SELECT at, max(version) AS version, argMax(table_rows[indexOf(tables, '{table}')], s.version) AS expected
    FROM snapshot AS s
    WHERE dataset = '{dataset}'
      AND kind IN ('job', 'backfill')
      AND at BETWEEN toDateTime({start:UInt32}, 'UTC') AND toDateTime({last:UInt32}, 'UTC')
    GROUP BY at
) AS listed
LEFT JOIN
(
    SELECT observed_at, version, count() AS present
    FROM {table}
    WHERE observed_at BETWEEN toDateTime({start:UInt32}, 'UTC') AND toDateTime({last:UInt32}, 'UTC')
    GROUP BY observed_at, version
) AS stored ON listed.at = stored.observed_at AND listed.version = stored.version
WHERE present < expected

-- name: union_queries
-- The rows of several queries.
{queries}

-- name: find_first_observed
-- From when is the oldest observation or rollup? The end of time if there is none.
SELECT least(
    (SELECT toUnixTimestamp(if(count() = 0, toDateTime(4294967295, 'UTC'), min(observed_at))) FROM observation),
    (SELECT toUnixTimestamp(if(count() = 0, toDateTime(4294967295, 'UTC'), min(start))) FROM rollup WHERE width = '15min')
) AS first

-- name: compare_rollups
-- Which rollups of a width have another number of observations than what the next smaller width has of them? Those that begin
-- in a range of time and are closed, as ranges: one for each series and {span}.
SELECT
    toString(history) AS what,
    toString(asset_id) AS asset_id,
    toUnixTimestamp(min(begins_at)) AS first,
    toUnixTimestamp(max({ends_at})) AS until
FROM
(
    SELECT history, asset_id, begins_at
    FROM
    (
        {narrower}

        UNION ALL

        SELECT history, asset_id, start AS begins_at, -toInt64({counted}) AS observations
        FROM rollup FINAL
        WHERE width = {width:String}
          AND start >= toDateTime({start:UInt32}, 'UTC') AND start < toDateTime({end:UInt32}, 'UTC')
    )
    GROUP BY history, asset_id, begins_at
    HAVING sum(observations) != 0
)
WHERE toUnixTimestamp({ends_at}) <= transform(toString(history), {histories:Array(String)}, {ends:Array(UInt32)}, toUInt32(0))
GROUP BY history, asset_id, {span}(begins_at)
SETTINGS do_not_merge_across_partitions_select_final = 1

-- name: count_narrower_rollups
-- How many observations do the rollups of a width have, by the start of the next wider one? A part of compare_rollups.
SELECT history, asset_id, {begins_at} AS begins_at, toInt64({counted}) AS observations
FROM rollup FINAL
WHERE width = {narrower_width:String}
  AND start >= toDateTime({start:UInt32}, 'UTC') AND start < toDateTime({end:UInt32}, 'UTC')

-- name: count_15min_observations
-- How many observations does each rollup of 15 minutes in a range have? A part of compare_rollups.
SELECT history, asset_id, toStartOfFifteenMinutes(observed_at) AS begins_at, toInt64(1) AS observations
FROM observation FINAL
WHERE observed_at >= toDateTime({start:UInt32}, 'UTC') AND observed_at < toDateTime({end:UInt32}, 'UTC')

-- name: find_observed_after
-- When was each of some series observed first at or after a second of its own? Nothing of those that were not.
SELECT toString(o.history) AS what, toString(o.asset_id) AS asset_id, s.3 AS until, min(toUnixTimestamp(observed_at)) AS next
FROM observation AS o
INNER JOIN
(
    SELECT arrayJoin(arrayZip({histories:Array(String)}, {ids:Array(String)}, {untils:Array(UInt32)})) AS s
) AS series ON toString(o.history) = s.1 AND toString(o.asset_id) = s.2
WHERE observed_at >= toDateTime(s.3, 'UTC')
GROUP BY what, asset_id, until

-- name: find_all_observed_after
-- When had every series of a history that was observed after a second been observed? 0 if none was.
SELECT toUnixTimestamp(max(first_at)) AS next
FROM
(
    SELECT min(observed_at) AS first_at
    FROM observation
    WHERE history = {history:String} AND observed_at > toDateTime({after:UInt32}, 'UTC')
    GROUP BY asset_id
)

-- name: find_written_until
-- Up to when had each dataset been observed at a moment? Snapshots that were taken again since count for those before.
SELECT toString(dataset) AS name, toUnixTimestamp(max(last_observed_at)) AS until
FROM snapshot AS s
WHERE kind IN ('job', 'backfill', 'import')
  AND (s.version < {before:UInt64} OR at <= toDateTime({moment:UInt32}, 'UTC'))
GROUP BY name

-- name: check_written_before
-- Has a dataset a run with observations in a range that began before a moment?
SELECT count() > 0 AS has_any
FROM snapshot AS s FINAL
WHERE dataset = {dataset:String}
  AND kind IN ('job', 'backfill', 'import')
  AND first_observed_at <= toDateTime({last:UInt32}, 'UTC')
  AND last_observed_at >= toDateTime({first:UInt32}, 'UTC')
  AND s.version < {before:UInt64}

-- name: list_broken_parts
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
