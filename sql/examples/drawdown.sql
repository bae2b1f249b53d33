-- What was the drawdown of each asset in the last 90 days? The largest fall from an earlier peak, as a fraction of it.
-- By the price at the end of each hour, carried forward if there was none.
SELECT asset_id, symbol, round(max(fall), 6) AS drawdown, argMax(hour, fall) AS lowest_in
FROM
(
    SELECT *, max(close) OVER (PARTITION BY asset_id ORDER BY hour) AS peak, 1 - close / peak AS fall
    FROM price_hourly
    WHERE hour >= now('UTC') - INTERVAL 90 DAY
)
WHERE peak > 0
GROUP BY asset_id, symbol
ORDER BY drawdown DESC, asset_id;
