-- What was the net flow of deposits of each asset in each of the last 26 weeks (Monday to Sunday, UTC), in USD?
-- Sums include events of known value; `unpriced` counts the others. toMonday(time) is toStartOfWeek(time, 1): weeks of
-- mode 1 begin on Monday, weeks of the default mode, 0, on Sunday.
SELECT toMonday(time) AS week, asset_id, symbol, sum(if(action = 'lend', usd, 0)) AS lent_usd,
    sum(if(action = 'redeem', usd, 0)) AS redeemed_usd, lent_usd - redeemed_usd AS net_usd,
    countIf(usd IS NULL) AS unpriced
FROM events
WHERE action IN ('lend', 'redeem')
  AND time >= toMonday(now('UTC')) - INTERVAL 26 WEEK
  AND time < toMonday(now('UTC'))
GROUP BY week, asset_id, symbol
ORDER BY week, net_usd DESC, asset_id;
