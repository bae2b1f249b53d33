-- The write lock, and the steps of a rewrite: stage, announce, put in place.

-- name: insert_lock
-- Requests the write lock, or releases it for good.
INSERT INTO write_lock (holder, operation, dataset, command, released)
SELECT {holder:String}, {operation:String}, {dataset:String}, {command:String}, {released:UInt8}

-- name: extend_lock
-- Sends a heartbeat of the write lock's holder, which counts only while the lock is held.
INSERT INTO write_lock
SELECT * REPLACE (now64(3) AS heartbeat_at)
FROM write_lock AS l FINAL
WHERE holder = {holder:String}
  AND NOT released
  AND l.heartbeat_at BETWEEN now64(3) - toIntervalSecond({seconds:UInt32}) AND now64(3) + toIntervalSecond({seconds:UInt32})

-- name: list_lock_holders
-- The processes that hold or request the write lock, oldest first. A row whose heartbeat is too old, or from the
-- future, does not count.
SELECT holder, operation, dataset, command, toUnixTimestamp(requested_at) AS requested_at
FROM write_lock FINAL
WHERE NOT released
  AND heartbeat_at BETWEEN now64(3) - toIntervalSecond({seconds:UInt32}) AND now64(3) + toIntervalSecond({seconds:UInt32})
ORDER BY write_lock.requested_at
SETTINGS max_threads = 1

-- name: check_lock_held
-- Does a holder still have the write lock: it has not released it, and its last heartbeat is recent?
SELECT count() = 1 AS held
FROM write_lock FINAL
WHERE holder = {holder:String}
  AND NOT released
  AND heartbeat_at BETWEEN now64(3) - toIntervalSecond({seconds:UInt32}) AND now64(3) + toIntervalSecond({seconds:UInt32})

-- name: announce_rewrite
-- Announces a rewrite, or records it as finished, if its writer still holds the write lock.
INSERT INTO rewrite (dataset, version, operation, command, rows, first_at, last_at, finished)
SELECT {dataset:String}, {version:UInt64}, {operation:String}, {command:String}, {rows:UInt64}, {first_at:UInt32}, {last_at:UInt32},
    {finished:UInt8}
WHERE ({held})

-- name: count_rewrites
-- The numbers of announced and of finished rewrites, for datasets that have any.
SELECT toString(dataset) AS name, count() AS announced, countIf(finished) AS finished
FROM rewrite FINAL
WHERE dataset IN {datasets:Array(String)}
GROUP BY name
SETTINGS max_threads = 1

-- name: measure_rewrite
-- The first second that a rewrite changes, the last observation that it adds, the last second that it changes, and the
-- numbers of observations that it adds and removes.
SELECT
    toUnixTimestamp(min(observed_at)) AS first,
    toUnixTimestamp(maxIf(observed_at, is_added)) AS last,
    toUnixTimestamp(max(observed_at)) AS until,
    countIf(is_added) AS added,
    countIf(NOT is_added) AS removed
FROM
(
    SELECT observed_at, true AS is_added FROM {added:Identifier}
    UNION ALL
    SELECT observed_at, false FROM {removed:Identifier}
)

-- name: measure_import
-- What a rewrite leaves of an import: its number of rows, and the first and last second of these and of earlier rows in
-- its span.
SELECT
    countIf(version = {version:UInt64}) AS rows,
    toUnixTimestamp(min(second)) AS first_observed_at,
    toUnixTimestamp(max(second)) AS last_observed_at
FROM
(
    SELECT version, observed_at AS second
    FROM observation
    WHERE history IN {histories:Array(String)}
      AND (history, asset_id, observed_at) NOT IN (SELECT history, asset_id, observed_at FROM {removed:Identifier})

    UNION ALL

    SELECT version, at AS second
    FROM event_version
    WHERE {dataset:String} = 'loans'
)
WHERE version <= {version:UInt64}
  AND second BETWEEN toDateTime({first:UInt32}, 'UTC') AND toDateTime({last:UInt32}, 'UTC')

-- name: list_staging_tables
-- The staging tables of a rewrite.
SELECT name
FROM system.tables
WHERE database = currentDatabase()
  AND endsWith(replaceOne(name, '_removed', ''), {suffix:String})

-- name: list_abandoned_staging
-- The staging tables that belong to no unfinished rewrite. Each is named after a table of ours.
SELECT name
FROM system.tables
WHERE database = currentDatabase()
  AND match(name, '^[a-z_]+_staging_[0-9]+(_removed)?$')
  AND splitByString('_staging_', name)[1] IN (SELECT name FROM system.tables WHERE database = currentDatabase())
  AND toUInt64OrZero(extract(name, '_staging_([0-9]+)')) NOT IN
    (SELECT version FROM rewrite GROUP BY version HAVING max(finished) = 0)

-- name: read_staged_runs
-- The staged ledger rows of a rewrite.
SELECT *
FROM {table:Identifier} FINAL

-- name: check_staged
-- Does a rewrite remove observations, and does it bring definitions of assets?
SELECT
    (SELECT count() FROM {removed:Identifier}) > 0 AS has_removed,
    (SELECT count() FROM {assets:Identifier}) > 0 AS has_assets

-- name: list_staged_days
-- The UTC days (their starts) on which a rewrite adds or removes observations, by history.
SELECT DISTINCT toString(history) AS history, toUnixTimestamp(toStartOfDay(observed_at)) AS day
FROM (SELECT history, observed_at FROM {added:Identifier} UNION ALL SELECT history, observed_at FROM {removed:Identifier})

-- name: count_staged_by_day
-- The number of rows of a staging table in each UTC day (its start).
SELECT toUnixTimestamp(toStartOfDay({time})) AS day, count() AS rows
FROM {staged}
GROUP BY day
ORDER BY day

-- name: insert_staged
-- Copies the rows of a staging table in a range of time, except rows that the table has, also in a later version.
INSERT INTO {table}
SELECT *
FROM {staged}
WHERE {time} >= toDateTime({start:UInt32}, 'UTC') AND {time} < toDateTime({end:UInt32}, 'UTC')
  AND ({key}) NOT IN
    (
        SELECT {key}
        FROM {table}
        WHERE {time} >= toDateTime({start:UInt32}, 'UTC') AND {time} < toDateTime({end:UInt32}, 'UTC')
          AND version >= {version:UInt64}
    )

-- name: find_removed_keys
-- The observations of histories in a range to remove: of all assets or some, of all commits or of a dataset's snapshots
-- in [start, end).
SELECT DISTINCT history, asset_id, observed_at
FROM observation
WHERE history IN {histories:Array(String)}
  AND observed_at >= toDateTime({start:UInt32}, 'UTC') AND observed_at < toDateTime({end:UInt32}, 'UTC')
  AND (empty({ids:Array(String)}) OR asset_id IN {ids:Array(String)})
  AND (NOT {snapshots:Bool} OR version IN
    (
        SELECT version
        FROM snapshot
        WHERE dataset = {dataset:String}
          AND at >= toDateTime({snapshots_start:UInt32}, 'UTC') AND at < toDateTime({snapshots_end:UInt32}, 'UTC')
          AND kind IN ('job', 'backfill')
    ))

-- name: count_removed
-- The number of observations to remove, by history, and their first and last instant.
SELECT
    history,
    count() AS observations,
    toUnixTimestamp(min(observed_at)) AS first,
    toUnixTimestamp(max(observed_at)) AS last
FROM ({keys})
GROUP BY history
ORDER BY history

-- name: stage_removed
-- Stages the observations that a rewrite removes.
INSERT INTO {removed} (history, asset_id, observed_at)
{keys}

-- name: read_removed_rows
-- The rows of a history that a rewrite removes in a range of time, with those of the total, which have an empty asset
-- id.
SELECT
    o.asset_id AS asset_id,
    a.symbol AS symbol,
    toDateTime64(o.observed_at, 3, 'UTC') AS observed_at,
    toFloat64(o.value) AS {value},
    o.value AS value_exact
FROM observation AS o FINAL
LEFT JOIN (SELECT id, argMax(symbol, (defined_at, version)) AS symbol FROM asset_definition GROUP BY id) AS a ON a.id = o.asset_id
WHERE o.history = '{history}' AND o.known
  AND o.asset_id IN (SELECT asset_id FROM {removed} WHERE history = '{history}')
  AND o.observed_at >= toDateTime({start:UInt32}, 'UTC') AND o.observed_at < toDateTime({end:UInt32}, 'UTC')
  AND (o.asset_id, o.observed_at) IN (SELECT asset_id, observed_at FROM {removed} WHERE history = '{history}')

-- name: delete_observations
-- Deletes the observations that a rewrite removes: all rows with their keys that are older than the rewrite. A mutation
-- rewrites every part of the table, so there is one for all months.
DELETE FROM observation{local}{on_cluster}
WHERE (history, asset_id, observed_at) IN (SELECT history, asset_id, observed_at FROM {removed}{local})
  AND version < {version}
SETTINGS lightweight_deletes_sync = 2

-- name: delete_events
-- If a rewrite removes snapshots, deletes the source's events after the newest remaining snapshot: events of the
-- removed commits, and orphans of dead commits.
DELETE FROM event_version{local}{on_cluster}
WHERE origin = 'source'
  AND version < {version}
  AND (SELECT count() FROM {staged} WHERE kind IN ('-job', '-backfill')) > 0
  AND at > (SELECT max(at) FROM snapshot WHERE dataset = 'loans' AND kind IN ('job', 'backfill'))
SETTINGS lightweight_deletes_sync = 2, mutations_execute_subqueries_on_initiator = 1

-- name: delete_runs
-- Deletes the ledger rows that a rewrite removes, but not the rows that replace them.
DELETE FROM snapshot
WHERE (dataset, at, concat('-', kind), import_id) IN (SELECT dataset, at, kind, import_id FROM {staged})
  AND version < {version}
  AND (dataset, at, kind, import_id, version, first_observed_at, last_observed_at, rows) NOT IN
    (SELECT dataset, at, kind, import_id, version, first_observed_at, last_observed_at, rows FROM {staged} FINAL)
SETTINGS lightweight_deletes_sync = 2

-- name: read_mutation_state
-- Has a table a mutation that reads a certain table: is it under way, and have all servers executed it?
SELECT
    countIf(NOT is_done) > 0 AS is_under_way,
    uniqExactIf({server}, is_done) = (SELECT count() FROM {servers}) AS is_done_everywhere
FROM {from}
WHERE database = {database:String} AND table = {table:String} AND position(command, {reading:String}) > 0
