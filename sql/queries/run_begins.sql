-- What does a run need to know before it begins? Which of some instants its family has completed, the newest state of the
-- family (none before its first run), whose data the store takes (nobody's yet if there is none), which migrations were
-- applied, a version: the time, or a number after the greatest version that there is, and which observations of the day
-- before the newest one are of runs that have died: the oldest of them, and how many. One row.
SELECT
    (
        SELECT groupUniqArray(toUnixTimestamp(at))
        FROM snapshot
        WHERE family = {family:String}
          AND kind IN ('job', 'backfill')
          AND at >= toDateTime({start:UInt32}, 'UTC')
          AND at <= toDateTime({end:UInt32}, 'UTC')
    ) AS completed,
    (
        SELECT groupArray((toUnixTimestamp(at), toUnixTimestamp(last_observed_at), version, runs))
        FROM snapshot_head FINAL
        WHERE family = {family:String}
    ) AS heads,
    (SELECT groupArray(side) FROM (SELECT side FROM claim ORDER BY claimed_at, side LIMIT 1)) AS sides,
    (SELECT groupArray((number, name, toString(checksum))) FROM schema_migration FINAL) AS migrations,
    greatest(
        toUInt64(toUnixTimestamp64Nano(now64(9))),
        (SELECT max(version) FROM (SELECT version FROM snapshot_head UNION ALL SELECT version FROM asset))
            + 1 + rand() % 1000000
    ) AS version,
    (
        WITH (SELECT (max(version), max(last_observed_at)) FROM snapshot_head WHERE family = {family:String}) AS head
        SELECT (toUnixTimestamp(minOrNull(observed_at)), count())
        FROM observation
        WHERE history IN {histories:Array(String)}
          AND version > head.1
          AND (head.1 = 0 OR (observed_at <= head.2 AND observed_at > head.2 - INTERVAL 1 DAY))
    ) AS left
SETTINGS max_threads = 1
