-- What does a run need to know before it begins? Which of some instants its family has completed, the newest state of the
-- family (none before its first run), whose data the store takes (nobody's yet if there is none), which migrations were
-- applied, a version, what runs that have died have left, and the time by the clock of ClickHouse. One row, made of the
-- queries that ask for each of these.
SELECT
    (
        SELECT groupUniqArray(toUnixTimestamp(at))
        FROM snapshot
        WHERE family = {family:String}
          AND kind IN ('job', 'backfill')
          AND at >= toDateTime({start:UInt32}, 'UTC')
          AND at < toDateTime({end:UInt32}, 'UTC')
    ) AS completed,
    (
        SELECT groupArray((toUnixTimestamp(at), toUnixTimestamp(last_observed_at), version, runs))
        FROM ({family_state})
    ) AS heads,
    (SELECT groupArray((side, source, made)) FROM ({claim})) AS claims,
    (SELECT groupArray((number, name, checksum)) FROM ({applied_migrations})) AS migrations,
    ({new_version}) AS version,
    (SELECT (oldest, rows) FROM ({left_behind})) AS left,
    toUInt32(now()) AS now
SETTINGS max_threads = 1
