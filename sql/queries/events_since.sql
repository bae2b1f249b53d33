-- Which events that are summed happened at or after an instant? Of a liquidation, the debt that it repaid. The sort key
-- begins with the address, so the times of all events are read, and all else of those since.
SELECT
    uuid,
    action,
    asset_id,
    toUnixTimestamp(at) AS second,
    ifNull(usd, 0) AS usd,
    toBool(brought_by != 'source') AS of_file
FROM account_event FINAL
PREWHERE at >= toDateTime({start:UInt32}, 'UTC')
WHERE action IN {actions:Array(String)}
  AND leg != 'collateral'
  AND NOT gone
ORDER BY at, uuid
