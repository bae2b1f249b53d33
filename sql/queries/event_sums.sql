-- What are the loans and flash loans between given instants worth, by asset? `since` is the instant after which an
-- interval begins.
SELECT
    kind,
    asset_id,
    roundDown(toUnixTimestamp(at) - 1, {instants:Array(UInt32)}) AS since,
    sum(usd) AS usd
FROM event FINAL
WHERE kind IN ('borrow', 'flash_loan')
  AND at > toDateTime({after:UInt32}, 'UTC')
  AND at <= toDateTime({until:UInt32}, 'UTC')
GROUP BY kind, asset_id, since
