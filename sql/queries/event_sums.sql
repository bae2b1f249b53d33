-- What are the events of some kinds between given instants worth, by kind and asset? `since` is the instant after which
-- an interval begins.
SELECT
    kind,
    asset_id,
    roundDown(toUnixTimestamp(at) - 1, {instants:Array(UInt32)}) AS since,
    sum(usd) AS usd
FROM event FINAL
WHERE kind IN {kinds:Array(String)}
  AND at > toDateTime({after:UInt32}, 'UTC')
  AND at <= toDateTime({until:UInt32}, 'UTC')
GROUP BY kind, asset_id, since
