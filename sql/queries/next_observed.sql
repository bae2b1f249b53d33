-- Of the given assets, which have a market or are the protocol token, and when is each next observed after a second of its
-- own? 0 if it is not.
SELECT
    asset_id,
    minIf(
        observed_at,
        toUnixTimestamp(observed_at) > transform(asset_id, {ids:Array(String)}, {seconds:Array(UInt32)}, toUInt32(0))
    ) AS next
FROM observation
WHERE history = {history:String}
  AND asset_id IN {ids:Array(String)}
  AND observed_at >= toDateTime({since:UInt32}, 'UTC')
  AND asset_id IN
  (
      SELECT asset_id FROM market_lend
      UNION ALL
      SELECT asset_id FROM market_collateral
      UNION ALL
      SELECT asset_id FROM market_debt
      UNION ALL
      SELECT asset_id FROM ptoken_state
  )
GROUP BY asset_id
