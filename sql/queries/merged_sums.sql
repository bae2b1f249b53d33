-- What is the sum of all events of an action and two assets, at the second of each? Of a liquidation, the debt that it repaid.
SELECT toUnixTimestamp(at) AS observed_at, sum(sum(ifNull(usd, 0))) OVER (ORDER BY at) AS events
FROM account_event FINAL
WHERE action = {action:String}
  AND leg != 'collateral'
  AND asset_id IN ({old:String}, {new:String})
  AND NOT gone
GROUP BY at
ORDER BY at
