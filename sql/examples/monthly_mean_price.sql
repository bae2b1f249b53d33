-- What was the mean price of each asset in each whole month, weighted by the time that each price held?
-- A month is whole once an observation of a later one has followed, whatever the asset. `area` reaches from the first
-- observation of the month to the last; where there is only one, that is the mean.
SELECT
    a.symbol AS symbol,
    toDate(c.cell) AS month,
    ifNull(c.area / nullIf(dateDiff('second', c.first_at, c.last_at), 0), c.close) AS mean,
    c.count AS observations
FROM cell AS c FINAL
INNER JOIN (SELECT id, argMax(symbol, version) AS symbol FROM asset GROUP BY id) AS a ON a.id = c.asset_id
WHERE c.history = 'price'
  AND c.width = 'month'
  AND c.cell < (SELECT toStartOfMonth(max(observed_at)) FROM price)
ORDER BY symbol, month;
