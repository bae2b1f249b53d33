-- Has a family a run with observations in a range that began before a moment?
SELECT count() > 0 AS has_any
FROM snapshot AS s FINAL
WHERE family = {family:String}
  AND kind IN ('job', 'backfill', 'import')
  AND first_observed_at <= toDateTime({last:UInt32}, 'UTC')
  AND last_observed_at >= toDateTime({first:UInt32}, 'UTC')
  AND s.version < {before:UInt64}
