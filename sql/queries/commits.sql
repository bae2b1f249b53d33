-- The base of a commit, and the conditions of its INSERTs.

-- name: read_commit_base
-- The base of a commit, in one row: which instants the dataset has completed, its head (none before the first commit),
-- the owner of the store (none before the first commit), the applied migrations, a new version, orphans of dead
-- commits, and ClickHouse's time.
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
-- The oldest observation, and the number of observations, that dead commits have left in the day before a dataset's
-- head. Without a head, all observations below a version are orphans.
WITH (SELECT (max(version), max(last_observed_at)) FROM snapshot_head WHERE dataset = {dataset:String}) AS head
SELECT toUnixTimestamp(minOrNull(observed_at)) AS oldest, count() AS rows
FROM observation
WHERE history IN {histories:Array(String)}
  AND version > head.1
  AND version < {version:UInt64}
  AND (head.1 = 0 OR (observed_at <= head.2 AND observed_at > head.2 - INTERVAL 1 DAY))

-- name: check_runs_unchanged
-- Has no other commit of the dataset completed since this commit began? Then it appends to the end that it has read.
SELECT sum(runs) = {runs:UInt64}
FROM snapshot_head
WHERE dataset = {dataset:String}

-- name: check_instants_free
-- Are none of the instants complete? Later instants may complete at the same time, as beside a rewrite.
SELECT count() = 0
FROM snapshot
WHERE dataset = {dataset:String}
  AND kind IN ('job', 'backfill')
  AND at IN (SELECT toDateTime(arrayJoin({instants:Array(UInt32)}), 'UTC'))

-- name: check_instants_complete
-- Are all of the instants still complete, by commits from before this commit? Then it may replace their snapshots.
SELECT uniqExact(at) = length({instants:Array(UInt32)}) AND max(version) < {version:UInt64}
FROM snapshot
WHERE dataset = {dataset:String}
  AND kind IN ('job', 'backfill')
  AND at IN (SELECT toDateTime(arrayJoin({instants:Array(UInt32)}), 'UTC'))

-- name: check_no_later_run
-- Has no later commit begun to write these snapshots? Its observations would replace those of this commit.
SELECT count() = 0
FROM {state:Identifier}
WHERE observed_at IN (SELECT toDateTime(arrayJoin({instants:Array(UInt32)}), 'UTC'))
  AND version > {version:UInt64}

-- name: check_nothing_added
-- Has no earlier commit written observations before the head since this commit began? If it died, rollups would lack
-- them.
SELECT rows <= {left:UInt64}
FROM ({count_orphans})
