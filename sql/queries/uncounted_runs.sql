-- Between when did a family take snapshots that began before a second and whose rows in tables were not counted? Both are 0
-- if there are none.
SELECT toUnixTimestamp(min(at)) AS first, toUnixTimestamp(max(at)) AS last
FROM snapshot AS s FINAL
WHERE family = {family:String}
  AND kind IN ('job', 'backfill')
  AND at BETWEEN toDateTime({since:UInt32}, 'UTC') AND toDateTime({last:UInt32}, 'UTC')
  AND s.version < {before:UInt64}
  AND empty(tables)
