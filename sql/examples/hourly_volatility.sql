-- How volatile was each asset over the last week? Standard deviation of its hourly log returns.
WITH hourly AS
(
    SELECT asset_id, toStartOfHour(observed_at) AS hour, argMax(p.price, p.observed_at) AS price
    FROM price AS p
    WHERE observed_at >= now('UTC') - INTERVAL 7 DAY
    GROUP BY asset_id, hour
),
returns AS
(
    SELECT
        asset_id,
        toFloat64(price) AS later,
        lagInFrame(later) OVER (PARTITION BY asset_id ORDER BY hour ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS earlier
    FROM hourly
)
SELECT asset_id, count() AS hours, round(stddevSamp(log(later / earlier)), 6) AS volatility
FROM returns
WHERE earlier > 0 AND later > 0
GROUP BY asset_id
ORDER BY volatility DESC;
