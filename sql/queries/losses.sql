-- Losses: rollups and snapshots compared with their inputs, and broken parts.

-- name: find_first_counted
-- The first snapshot with rows in tables that the ledger counts; the end of time if there is none.
SELECT toUnixTimestamp(if(count() = 0, toDateTime(4294967295, 'UTC'), min(at))) AS first
FROM snapshot
WHERE notEmpty(tables)

-- name: find_missing_rows
-- The complete snapshots in a range for which a table has fewer rows than the ledger counts. Later rewrites, and rows
-- that were sent twice, may add rows.
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
-- The oldest observation or rollup; the end of time if there is none.
SELECT least(
    (SELECT toUnixTimestamp(if(count() = 0, toDateTime(4294967295, 'UTC'), min(observed_at))) FROM observation),
    (SELECT toUnixTimestamp(if(count() = 0, toDateTime(4294967295, 'UTC'), min(start))) FROM rollup WHERE width = '15min')
) AS first

-- name: compare_rollups
-- The rollups of a width whose number of observations differs from the next smaller width's: closed rollups that begin
-- in a range of time, joined to a range for each series and {span}.
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
-- The observations in rollups of a width, by the start of the next wider rollup. A part of compare_rollups.
SELECT history, asset_id, {begins_at} AS begins_at, toInt64({counted}) AS observations
FROM rollup FINAL
WHERE width = {narrower_width:String}
  AND start >= toDateTime({start:UInt32}, 'UTC') AND start < toDateTime({end:UInt32}, 'UTC')

-- name: count_15min_observations
-- The number of observations in each 15min rollup of a range. A part of compare_rollups.
SELECT history, asset_id, toStartOfFifteenMinutes(observed_at) AS begins_at, toInt64(1) AS observations
FROM observation FINAL
WHERE observed_at >= toDateTime({start:UInt32}, 'UTC') AND observed_at < toDateTime({end:UInt32}, 'UTC')

-- name: find_observed_after
-- The first observation of each series at or after a second of its own, if any.
SELECT toString(o.history) AS what, toString(o.asset_id) AS asset_id, s.3 AS until, min(toUnixTimestamp(observed_at)) AS next
FROM observation AS o
INNER JOIN
(
    SELECT arrayJoin(arrayZip({histories:Array(String)}, {ids:Array(String)}, {ends:Array(UInt32)})) AS s
) AS series ON toString(o.history) = s.1 AND toString(o.asset_id) = s.2
WHERE observed_at >= toDateTime(s.3, 'UTC')
GROUP BY what, asset_id, until

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
-- The newest observation of each dataset at a moment. A snapshot that was taken again since counts if its instant is
-- not after the moment.
SELECT toString(dataset) AS name, toUnixTimestamp(max(last_observed_at)) AS until
FROM snapshot AS s
WHERE kind IN ('job', 'backfill', 'import')
  AND (s.version < {before:UInt64} OR at <= toDateTime({moment:UInt32}, 'UTC'))
GROUP BY name

-- name: check_written_before
-- Has a dataset observations in a range from a commit that began before a moment?
SELECT count() > 0 AS has_any
FROM snapshot AS s FINAL
WHERE dataset = {dataset:String}
  AND kind IN ('job', 'backfill', 'import')
  AND first_observed_at <= toDateTime({last:UInt32}, 'UTC')
  AND last_observed_at >= toDateTime({first:UInt32}, 'UTC')
  AND s.version < {before:UInt64}

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
