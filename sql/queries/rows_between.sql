-- Which rows does a table have for the complete snapshots of a range [start, end) and for the newest one before it? As
-- `snapshot_rows` has them for one.
SELECT observed_at, {columns}
FROM {table:Identifier}
WHERE (observed_at, version) IN
(
    SELECT at, max(version)
    FROM snapshot
    WHERE family = {family:String}
      AND kind IN ('job', 'backfill')
      AND at < toDateTime({end:UInt32}, 'UTC')
      AND at >=
      (
          SELECT max(at)
          FROM snapshot
          WHERE family = {family:String}
            AND kind IN ('job', 'backfill')
            AND at <= toDateTime({start:UInt32}, 'UTC')
      )
    GROUP BY at
)
ORDER BY observed_at, {key}
LIMIT 1 BY observed_at, {key}
