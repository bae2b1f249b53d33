-- The ledger: commits, heads, the owner of the store, and reports of schedulers.

-- name: read_ledger
-- The head of each dataset, unfinished rewrites, the number of finished rewrites, and the sources of commits. Finished
-- rewrites are one row, with version 0 and `at` the last announcement. Rewrites are read first: a head that includes
-- the commits of a rewrite may come with too low a count of rewrites, and is then rejected, but never the other way
-- round. `now` is ClickHouse's clock.
SELECT
    'rewrite' AS how,
    dataset,
    if(finished, 0, r.version) AS version,
    count() AS runs,
    max(announced_at) AS at,
    toDateTime(0, 'UTC') AS last_observed_at,
    [] AS sources,
    toUInt32(now()) AS now,
    CAST([], 'Array(Tuple(name String, first_at DateTime(\'UTC\'), last_at DateTime(\'UTC\'), part String))') AS losses
FROM rewrite AS r FINAL
GROUP BY dataset, version

UNION ALL

SELECT 'head', dataset, version, runs, at, last_observed_at, sources, toUInt32(now()), []
FROM snapshot_head FINAL

UNION ALL

SELECT 'loss', dataset, l.version, 0, toDateTime(0, 'UTC'), toDateTime(0, 'UTC'), [], toUInt32(now()), losses
FROM loss AS l FINAL
SETTINGS max_threads = 1

-- name: read_head
-- The head of a dataset, without its count of rewrites, which costs more.
SELECT at, last_observed_at, version, runs
FROM snapshot_head FINAL
WHERE dataset = {dataset:String}
SETTINGS max_threads = 1

-- name: read_present_head
-- For a dataset whose newest snapshot is from the future: the newest snapshot and observation up to an instant, and the
-- first snapshot after it; 0 for none. Observations of imports count up to the present minute, so that the head does
-- not change every second. Reads in the order of the table: the newest observation is in one of the last snapshots, or
-- in an import that is not older.
WITH snapshots AS
(
    SELECT at, last_observed_at AS observed_at, false AS later
    FROM snapshot
    WHERE dataset = {dataset:String} AND kind IN ('job', 'backfill') AND at <= toDateTime({latest:UInt32}, 'UTC')
    ORDER BY at DESC
    LIMIT 100
)
SELECT maxIf(at, NOT later) AS newest, max(observed_at) AS last_observed_at, minIf(at, later) AS ahead
FROM
(
    SELECT * FROM snapshots

    UNION ALL

    SELECT at, toDateTime(0, 'UTC'), true
    FROM snapshot
    WHERE dataset = {dataset:String} AND kind IN ('job', 'backfill') AND at > toDateTime({latest:UInt32}, 'UTC')
    ORDER BY at
    LIMIT 1

    UNION ALL

    SELECT toDateTime(0, 'UTC'), least(last_observed_at, toStartOfMinute(now('UTC'))), false
    FROM snapshot
    WHERE dataset = {dataset:String} AND kind = 'import' AND first_observed_at <= toDateTime({latest:UInt32}, 'UTC')
      AND (at = toDateTime(0, 'UTC') OR at >= (SELECT min(at) FROM snapshots))
)
SETTINGS max_threads = 1

-- name: derive_head
-- A dataset's head by the remaining commits: its newest snapshot and observation, and its sources. A dataset with
-- histories only ends at its newest observation.
SELECT
    max(s.at) AS at,
    {newest} AS last_observed_at,
    max(s.version) AS version,
    groupUniqArray((if(s.kind = 'import', '', s.source), s.simulated)) AS sources
FROM snapshot AS s
WHERE dataset = '{dataset}'
  AND kind IN ('job', 'backfill', 'import')

-- name: compare_head
-- Does a dataset's head exceed its remaining commits, and are there any?
SELECT e.version > 0 AS has_runs,
    h.at > e.at OR h.last_observed_at > e.last_observed_at OR arraySort(h.sources) != arraySort(e.sources) AS exceeds
FROM (SELECT * FROM snapshot_head FINAL WHERE dataset = '{dataset}') AS h
CROSS JOIN ({ends}) AS e

-- name: lower_head
-- Lowers a dataset's head to its remaining commits; none of its aggregates would decrease by itself. It may also undo a
-- commit that is listed at the same time, so raise_head follows.
ALTER TABLE snapshot_head
UPDATE
    at = least(at, (SELECT at FROM ({ends}))),
    last_observed_at = least(last_observed_at, (SELECT last_observed_at FROM ({ends}))),
    sources = (SELECT sources FROM ({ends}))
WHERE dataset = '{dataset}'
SETTINGS mutations_sync = 2, mutations_execute_subqueries_on_initiator = 1

-- name: raise_head
-- Raises a dataset's head to its remaining commits, if there are any, without counting them again.
INSERT INTO snapshot_head (dataset, at, last_observed_at, version, runs, sources)
SELECT '{dataset}', at, last_observed_at, version, 0, sources
FROM ({ends})
WHERE version > 0

-- name: clear_ledger
-- Deletes a dataset's ledger rows, or its head, if no commit from before a rewrite is left. Commits that are listed
-- meanwhile have greater versions.
DELETE FROM {table}
WHERE dataset = '{dataset}'
  AND version <= {version}
  AND (SELECT version FROM ({ends})) = 0
SETTINGS lightweight_deletes_sync = 2, mutations_execute_subqueries_on_initiator = 1

-- name: make_version
-- A version for new rows: the time, or the greatest version of the store plus one.
SELECT greatest(
    toUInt64(toUnixTimestamp64Nano(now64(9))),
    (SELECT max(version) FROM (SELECT version FROM snapshot_head UNION ALL SELECT version FROM asset_definition))
        + 1 + rand() % 1000000
) AS version
SETTINGS max_threads = 1

-- name: read_owner
-- The owner of the store, and its source; nothing before the first commit.
SELECT name, source, toUnixTimestamp64Micro(claimed_at) AS claimed_at
FROM owner AS o
ORDER BY o.claimed_at DESC
LIMIT 1

-- name: insert_owner
-- Claims the store for an owner and a source, in place of the claim of an instant. Only the first of such claims is
-- written.
INSERT INTO owner (name, source, claimed_at)
SETTINGS insert_deduplicate = 1, insert_deduplication_token = {token:String}
VALUES ({name:String}, {source:String}, greatest(now64(6), fromUnixTimestamp64Micro({after:Int64} + 1)))

-- name: find_newest_origin
-- The source of a dataset's newest commit, except for some versions. Empty for files.
SELECT if(kind = 'import', '', source) AS source, simulated
FROM snapshot
WHERE dataset = {dataset:String}
  AND version NOT IN {without:Array(UInt64)}
ORDER BY version DESC
LIMIT 1

-- name: find_first_moment
-- The first instant with a snapshot or an imported observation of a dataset, if any. The order of the table finds the
-- oldest snapshot, so only imports are searched, without imports of values only.
SELECT min(begins_at) AS first
FROM
(
    SELECT begins_at
    FROM
    (
        SELECT at AS begins_at
        FROM snapshot
        WHERE dataset = {dataset:String}
          AND kind IN ('job', 'backfill')
        ORDER BY at
        LIMIT 1
    )

    UNION ALL

    SELECT first_observed_at AS begins_at
    FROM snapshot
    WHERE dataset = {dataset:String}
      AND kind = 'import'
      AND at > toDateTime(0, 'UTC')
)
HAVING count() > 0
SETTINGS max_threads = 1

-- name: find_nth_snapshot
-- The nth snapshot, from 1, of a dataset by jobs and backfills in a range [start, end).
SELECT DISTINCT at
FROM snapshot
WHERE dataset = {dataset:String}
  AND at >= toDateTime({start:UInt32}, 'UTC')
  AND at < toDateTime({end:UInt32}, 'UTC')
  AND kind IN ('job', 'backfill')
ORDER BY at
LIMIT 1 OFFSET {number:UInt32} - 1

-- name: find_snapshot_before
-- The last snapshot of a dataset by a job or backfill before an instant, its version, and the instant up to which its
-- source had all events.
SELECT at, version, complete_until
FROM snapshot
WHERE dataset = {dataset:String}
  AND at < toDateTime({before:UInt32}, 'UTC')
  AND kind IN ('job', 'backfill')
ORDER BY at DESC, version DESC
LIMIT 1
SETTINGS max_threads = 1

-- name: find_snapshots_at
-- The last snapshot of each dataset by jobs and backfills in each part of a range. Parts begin at `starts`, which
-- ascend from 0, and the last part ends at `last`.
SELECT name, start, newest.1 AS at, newest.2 AS version
FROM
(
    SELECT
        toString(dataset) AS name,
        roundDown(toUnixTimestamp(s.at), {starts:Array(UInt32)}) AS start,
        max((toUnixTimestamp(s.at), version)) AS newest
    FROM snapshot AS s
    WHERE dataset IN {datasets:Array(String)}
      AND kind IN ('job', 'backfill')
      AND s.at <= toDateTime({last:UInt32}, 'UTC')
    GROUP BY name, start
)

-- name: list_snapshots
-- The snapshots of a dataset by jobs and backfills in a range [start, end).
SELECT *
FROM snapshot FINAL
WHERE dataset = {dataset:String}
  AND at >= toDateTime({start:UInt32}, 'UTC') AND at < toDateTime({end:UInt32}, 'UTC')
  AND kind IN ('job', 'backfill')
ORDER BY at, version

-- name: list_snapshot_sources
-- The snapshots of a dataset by jobs and backfills in a range [start, end), in the order of time, with kind and source.
SELECT
    at,
    argMax(kind, version) AS kind,
    argMax(s.source, version) AS source,
    argMax(s.simulated, version) AS simulated
FROM snapshot AS s
WHERE dataset = {dataset:String}
  AND s.kind IN ('job', 'backfill')
  AND at >= toDateTime({start:UInt32}, 'UTC') AND at < toDateTime({end:UInt32}, 'UTC')
GROUP BY at
ORDER BY at

-- name: find_max_version
-- Over the commits of a dataset that may have rows, or show definitions, at or before an instant: the greatest version
-- above the newest snapshot's, and the number of imports that may have rows between the two. The index on versions
-- leaves few rows to read; without imports, none are searched.
SELECT max(version) AS version, sum(import) AS imports
FROM
(
    SELECT version, toUInt64(0) AS import
    FROM snapshot
    WHERE dataset = {dataset:String}
      AND at <= toDateTime({at:UInt32}, 'UTC')
      AND kind != 'correction'
      AND version > {version:UInt64}

    UNION ALL

    SELECT version, toUInt64(kind = 'import') AS import
    FROM snapshot
    WHERE {imported:UInt8}
      AND dataset = {dataset:String}
      AND kind IN ('import', 'assets')
      AND at >= toDateTime({start:UInt32}, 'UTC')
      AND first_observed_at <= toDateTime({at:UInt32}, 'UTC')
)
SETTINGS max_threads = 1

-- name: count_runs_since
-- The number of a dataset's commits with versions in (after, max_version], and their oldest observation. Ledger rows
-- that show definitions bring none.
SELECT
    uniqExact(at, kind, import_id, version) AS runs,
    min(if(kind = 'assets', last_observed_at, first_observed_at)) AS first_observed_at
FROM snapshot
WHERE dataset = {dataset:String}
  AND version > {after:UInt64}
  AND version <= {max_version:UInt64}

-- name: list_overlapping_imports
-- The imports of a dataset, from before a rewrite, that may have observations at or after a second.
SELECT *
FROM snapshot FINAL
WHERE dataset = {dataset:String}
  AND kind = 'import'
  AND last_observed_at >= toDateTime({start:UInt32}, 'UTC')
  AND version < {version:UInt64}

-- name: read_job_runs
-- The last report of each scheduler about each dataset, and its age in seconds.
SELECT dataset, scheduler, toInt64(now() - reported_at) AS age, interval_seconds, next_at, failed_at, error, ran_at, outcome, duration_ms
FROM job_run FINAL
ORDER BY reported_at DESC, scheduler, dataset

-- name: count_missing_runs
-- The number of scheduled instants without a snapshot, by dataset, from `start` to the newest snapshot. A snapshot at
-- any second counts for the last multiple of the interval before it. Future instants do not count.
SELECT
    dataset,
    max(instant) - min(instant) + 1 - uniqExact(instant) AS missing
FROM
(
    SELECT
        dataset,
        intDiv(toUInt32(at), transform(dataset, {datasets:Array(String)}, {intervals:Array(UInt32)}, 1)) AS instant,
        minIf(instant, kind = 'job') OVER (PARTITION BY dataset) AS first,
        countIf(kind = 'job') OVER (PARTITION BY dataset) AS scheduled
    FROM snapshot
    WHERE dataset IN {datasets:Array(String)} AND kind IN ('job', 'backfill') AND at BETWEEN toDateTime({start:UInt32}) AND now() + 60
)
WHERE instant >= first AND scheduled > 0
GROUP BY dataset
