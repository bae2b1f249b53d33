-- What was the drawdown of each asset in the last 90 days? The largest fall from an earlier peak, as a fraction of it.
SELECT asset_id, symbol, round(max(fall), 6) AS drawdown, argMax(observed_at, fall) AS lowest_at
FROM
(
    SELECT asset_id, symbol, observed_at,
        max(p.price) OVER (PARTITION BY asset_id ORDER BY observed_at) AS peak,
        1 - p.price / peak AS fall
    FROM price AS p
    WHERE observed_at >= now('UTC') - INTERVAL 90 DAY
)
WHERE peak > 0
GROUP BY asset_id, symbol
ORDER BY drawdown DESC, asset_id;
