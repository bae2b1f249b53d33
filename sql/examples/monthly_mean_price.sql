-- What was the mean price of each asset in each month that has ended, weighted by the time that each price held?
-- `area` reaches from the first observation of the month to the last; where there is only one, that is the mean.
SELECT
    a.symbol AS symbol,
    toDate(c.cell) AS month,
    ifNull(c.area / nullIf(dateDiff('second', c.first_at, c.last_at), 0), c.close) AS mean,
    c.count AS observations
FROM price_cell AS c FINAL
INNER JOIN (SELECT id, argMax(symbol, version) AS symbol FROM asset GROUP BY id) AS a ON a.id = c.asset_id
WHERE c.width = 'month'
  AND c.cell < toStartOfMonth(now('UTC'))
ORDER BY symbol, month;
