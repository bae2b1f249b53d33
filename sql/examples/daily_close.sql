-- What were the opening, highest, lowest and closing price of each asset on each of the last 30 UTC days that have ended?
SELECT a.symbol AS symbol, toDate(c.cell) AS day, c.open, c.high, c.low, c.close
FROM cell AS c FINAL
INNER JOIN (SELECT id, argMax(symbol, version) AS symbol FROM asset GROUP BY id) AS a ON a.id = c.asset_id
WHERE c.history = 'price'
  AND c.width = 'day'
  AND c.cell >= toStartOfDay(now('UTC')) - INTERVAL 30 DAY
  AND c.cell < toStartOfDay(now('UTC'))
ORDER BY symbol, day;
