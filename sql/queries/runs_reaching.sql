-- Of the runs of a family that may have rows, or show definitions, at or before an instant: what is the greatest version
-- above that of its newest snapshot, and how many are imports that may have rows between the two? The index on versions
-- leaves few snapshots to read; where nothing was imported, no imports are looked for.
SELECT max(version) AS version, sum(import) AS imports
FROM
(
    SELECT version, toUInt64(0) AS import
    FROM snapshot
    WHERE family = {family:String}
      AND at <= toDateTime({at:UInt32}, 'UTC')
      AND kind != 'correction'
      AND version > {version:UInt64}

    UNION ALL

    SELECT version, toUInt64(kind = 'import') AS import
    FROM snapshot
    WHERE {imported:UInt8}
      AND family = {family:String}
      AND kind IN ('import', 'assets')
      AND at >= toDateTime({since:UInt32}, 'UTC')
      AND first_observed_at <= toDateTime({at:UInt32}, 'UTC')
)
SETTINGS max_threads = 1
