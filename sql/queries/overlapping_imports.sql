-- Which imports of a family may have brought observations at or after a second, of those before a rewrite?
SELECT *
FROM snapshot FINAL
WHERE family = {family:String}
  AND kind = 'import'
  AND last_observed_at >= toDateTime({since:UInt32}, 'UTC')
  AND version < {version:UInt64}
