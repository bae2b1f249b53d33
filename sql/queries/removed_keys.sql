-- Which observations of some histories are there in a range [since, until): of all assets or some, of all runs or of a
-- family's snapshots in [start, end)?
SELECT DISTINCT history, asset_id, observed_at
FROM observation
WHERE history IN {histories:Array(String)}
  AND observed_at >= toDateTime({since:UInt32}, 'UTC') AND observed_at < toDateTime({until:UInt32}, 'UTC')
  AND (empty({ids:Array(String)}) OR asset_id IN {ids:Array(String)})
  AND (NOT {snapshots:Bool} OR version IN
    (
        SELECT version
        FROM snapshot
        WHERE family = {family:String}
          AND at >= toDateTime({start:UInt32}, 'UTC') AND at < toDateTime({end:UInt32}, 'UTC')
          AND kind IN ('job', 'backfill')
    ))
