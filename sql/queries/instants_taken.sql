-- Are all of some instants still complete, and none completed anew since a run began? Then it may replace their snapshots.
SELECT uniqExact(at) = length({instants:Array(UInt32)}) AND max(version) < {version:UInt64}
FROM snapshot
WHERE family = {family:String}
  AND kind IN ('job', 'backfill')
  AND at IN (SELECT toDateTime(arrayJoin({instants:Array(UInt32)}), 'UTC'))
