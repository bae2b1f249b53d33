-- What were the opening, highest, lowest and closing price of each asset on the last three days of a time zone?
-- Cells of days are UTC days, so days of other zones are put together from quarters of an hour.
WITH toDate(now('America/New_York')) AS today
SELECT
    c.asset_id,
    toDate(c.cell, 'America/New_York') AS day,
    argMin(c.open, c.cell) AS open,
    max(c.high) AS high,
    min(c.low) AS low,
    argMax(c.close, c.cell) AS close
FROM cell AS c FINAL
WHERE c.history = 'price' AND c.width = 'quarter'
  AND c.cell >= now('UTC') - INTERVAL 5 DAY AND day >= today - 3 AND day < today
GROUP BY c.asset_id, day
ORDER BY c.asset_id, day;
