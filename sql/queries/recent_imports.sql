-- Which imports and backfills were completed last, and what did each bring? A backfill has a run for each 500 snapshots.
SELECT
    family,
    kind,
    version,
    count() AS snapshots,
    sum(rows) AS rows,
    min(first_observed_at) AS first_observed_at,
    max(last_observed_at) AS last_observed_at,
    any(source) AS source
FROM snapshot FINAL
WHERE kind IN ('import', 'backfill')
GROUP BY family, kind, version
ORDER BY version DESC, family
LIMIT {most:UInt32}
