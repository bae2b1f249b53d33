-- Where did the imports of some files begin that ended with an observation? Nothing if there was none.
SELECT min(first_observed_at) AS first_observed_at
FROM snapshot
WHERE family = {family:String}
  AND at = toDateTime({at:UInt32}, 'UTC')
  AND kind = 'import'
  AND files = {files:UInt64}
HAVING count() > 0
