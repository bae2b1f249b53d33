-- How much debt of each asset did liquidations repay on each of the last 30 days, and today?
-- USD include liquidations of known value; `unpriced` counts the others. The seized collateral is the other leg.
SELECT toDate(time) AS day, asset_id, symbol, count() AS liquidations, sum(e.units) AS units, sum(e.usd) AS usd,
    countIf(e.usd IS NULL) AS unpriced
FROM events AS e
WHERE action = 'liquidate' AND leg = 'debt' AND time >= toStartOfDay(now('UTC')) - INTERVAL 30 DAY
GROUP BY day, asset_id, symbol
ORDER BY day, usd DESC, asset_id;
