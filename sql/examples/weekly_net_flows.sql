-- What was the net flow of deposits of each asset in each of the last 26 weeks (Monday to Sunday, UTC), in USD?
SELECT toMonday(at) AS week, asset_id, symbol, sumIf(usd, kind = 'lend') AS lent_usd,
    sumIf(usd, kind = 'redeem') AS redeemed_usd, lent_usd - redeemed_usd AS net_usd
FROM events
WHERE kind IN ('lend', 'redeem')
  AND at >= toMonday(now('UTC')) - INTERVAL 26 WEEK
  AND at < toMonday(now('UTC'))
GROUP BY week, asset_id, symbol
ORDER BY week, net_usd DESC, asset_id;
