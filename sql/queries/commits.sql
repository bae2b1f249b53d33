-- What a run must know before it begins, and the conditions of its INSERTs.

-- name: read_commit_base
-- What does a run need to know before it begins? Which of some instants its dataset has completed, the newest state of the
-- dataset (none before its first run), whose data the store takes (nobody's yet if there is none), which migrations were
-- applied, a version, what runs that have died have left, and the time by the clock of ClickHouse. One row, made of the
-- queries that ask for each of these.
SELECT
    (
        SELECT groupUniqArray(toUnixTimestamp(at))
        FROM snapshot
        WHERE dataset = {dataset:String}
          AND kind IN ('job', 'backfill')
          AND at >= toDateTime({start:UInt32}, 'UTC')
          AND at < toDateTime({end:UInt32}, 'UTC')
    ) AS completed,
    (
        SELECT groupArray((toUnixTimestamp(at), toUnixTimestamp(last_observed_at), version, runs))
        FROM ({read_head})
    ) AS heads,
    (SELECT groupArray((name, source, claimed_at)) FROM ({read_owner})) AS owners,
    (SELECT groupArray((number, name, checksum)) FROM ({read_migrations})) AS migrations,
    ({make_version}) AS version,
    (SELECT (oldest, rows) FROM ({count_orphans})) AS left,
    toUInt32(now()) AS now
SETTINGS max_threads = 1

-- name: count_orphans
-- Which observations of a dataset, of the day before its newest one, have runs written that have died: the oldest of them,
-- and how many? All that runs before a version have written, if the dataset has no completed run.
WITH (SELECT (max(version), max(last_observed_at)) FROM snapshot_head WHERE dataset = {dataset:String}) AS head
SELECT toUnixTimestamp(minOrNull(observed_at)) AS oldest, count() AS rows
FROM observation
WHERE history IN {histories:Array(String)}
  AND version > head.1
  AND version < {version:UInt64}
  AND (head.1 = 0 OR (observed_at <= head.2 AND observed_at > head.2 - INTERVAL 1 DAY))

-- name: check_runs_unchanged
-- Has no other run of a dataset been completed since one began? Then it appends to the end that it has read.
SELECT sum(runs) = {runs:UInt64}
FROM snapshot_head
WHERE dataset = {dataset:String}

-- name: check_instants_free
-- Has nobody completed any of some instants? Later ones may be completed at the same time, as beside a rewrite.
SELECT count() = 0
FROM snapshot
WHERE dataset = {dataset:String}
  AND kind IN ('job', 'backfill')
  AND at IN (SELECT toDateTime(arrayJoin({instants:Array(UInt32)}), 'UTC'))

-- name: check_instants_complete
-- Are all of some instants still complete, and none completed anew since a run began? Then it may replace their snapshots.
SELECT uniqExact(at) = length({instants:Array(UInt32)}) AND max(version) < {version:UInt64}
FROM snapshot
WHERE dataset = {dataset:String}
  AND kind IN ('job', 'backfill')
  AND at IN (SELECT toDateTime(arrayJoin({instants:Array(UInt32)}), 'UTC'))

-- name: check_no_later_run
-- Has no later run begun to write the same snapshots? Its observations would replace those of an earlier one.
SELECT count() = 0
FROM {state:Identifier}
WHERE observed_at IN (SELECT toDateTime(arrayJoin({instants:Array(UInt32)}), 'UTC'))
  AND version > {version:UInt64}

-- name: check_nothing_added
-- Has no earlier run written observations before the head since one began? If it has died, rollups would lack them.
SELECT rows <= {left:UInt64}
FROM ({count_orphans})
