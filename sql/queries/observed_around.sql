-- What did the snapshots of a family observe of some histories, from the last before a range of instants to the first after
-- it?
WITH
    (
        SELECT max(at)
        FROM snapshot
        WHERE family = {family:String} AND kind IN ('job', 'backfill') AND at < toDateTime({first:UInt32}, 'UTC')
    ) AS since,
    (
        SELECT if(count() = 0, toDateTime({last:UInt32}, 'UTC'), min(at))
        FROM snapshot
        WHERE family = {family:String} AND kind IN ('job', 'backfill') AND at > toDateTime({last:UInt32}, 'UTC')
    ) AS until
SELECT history, toString(asset_id) AS asset_id, toUnixTimestamp(observed_at) AS observed_at, value
FROM observation FINAL
WHERE history IN {histories:Array(String)}
  AND observed_at >= since
  AND observed_at <= until
  AND observed_at IN
  (
      SELECT at
      FROM snapshot
      WHERE family = {family:String} AND kind IN ('job', 'backfill') AND at >= since AND at <= until
  )
