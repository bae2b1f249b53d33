-- What was the closing price of each asset on each of the last 30 UTC days?
SELECT a.symbol AS symbol, toDate(r.cell) AS day, argMax(r.price, r.rank) AS close
FROM price_rollup AS r
INNER JOIN asset AS a ON a.id = r.asset_id
WHERE r.width = 'day'
  AND r.cell >= toStartOfDay(now('UTC')) - INTERVAL 30 DAY
GROUP BY symbol, day
ORDER BY symbol, day;
