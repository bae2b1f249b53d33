-- Up to when had each family been observed at a moment? Snapshots that were taken again since count for those before.
SELECT toString(family) AS name, toUnixTimestamp(max(last_observed_at)) AS until
FROM snapshot AS s
WHERE kind IN ('job', 'backfill', 'import')
  AND (s.version < {before:UInt64} OR at <= toDateTime({moment:UInt32}, 'UTC'))
GROUP BY name
