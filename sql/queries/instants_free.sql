-- Has nobody completed any of some instants? Later ones may be completed at the same time, as beside a rewrite.
SELECT count() = 0
FROM snapshot
WHERE family = {family:String}
  AND kind IN ('job', 'backfill')
  AND at IN (SELECT toDateTime(arrayJoin({instants:Array(UInt32)}), 'UTC'))
