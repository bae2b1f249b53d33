-- How do the daily returns of assets correlate? Log returns of 90 days, for each pair of assets whose prices move.
-- Only complete UTC days with a price count, after a day with a price.
WITH returns AS
(
    SELECT *, lagInFrame((close, day)) OVER (PARTITION BY asset_id ORDER BY day) AS earlier,
        if(earlier.2 = day - 1 AND close > 0 AND earlier.1 > 0, log(close / earlier.1), NULL) AS change
    FROM price_daily
    WHERE day >= toDate(now('UTC')) - 90 AND observations > 0
)
SELECT a.asset_id AS asset_id, a.symbol AS symbol, b.asset_id AS other_id, b.symbol AS other_symbol,
    count(a.change + b.change) AS days, round(corr(a.change, b.change), 4) AS correlation
FROM returns AS a INNER JOIN returns AS b USING (day)
WHERE asset_id < other_id GROUP BY ALL HAVING days > 1 AND isFinite(correlation)
ORDER BY correlation DESC, asset_id, other_id;
