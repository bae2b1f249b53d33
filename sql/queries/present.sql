-- Of a family whose newest snapshot is from the future, after an instant: what are the newest snapshot and the newest
-- observation up to then, and the first snapshot after it? 0 stands for none. Observations of imports count up to the
-- present minute, so that the family does not change every second. All is read by the order of the table: the newest
-- observation is in one of the last snapshots, or in an import that is not older.
WITH snapshots AS
(
    SELECT at, last_observed_at AS observed_at, false AS later
    FROM snapshot
    WHERE family = {family:String} AND kind IN ('job', 'backfill') AND at <= toDateTime({latest:UInt32}, 'UTC')
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
    WHERE family = {family:String} AND kind IN ('job', 'backfill') AND at > toDateTime({latest:UInt32}, 'UTC')
    ORDER BY at
    LIMIT 1

    UNION ALL

    SELECT toDateTime(0, 'UTC'), least(last_observed_at, toStartOfMinute(now('UTC'))), false
    FROM snapshot
    WHERE family = {family:String} AND kind = 'import' AND first_observed_at <= toDateTime({latest:UInt32}, 'UTC')
      AND (at = toDateTime(0, 'UTC') OR at >= (SELECT min(at) FROM snapshots))
)
SETTINGS max_threads = 1
