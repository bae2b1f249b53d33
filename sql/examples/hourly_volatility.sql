-- How volatile was each asset over the last week? Standard deviation of its log returns from one hour to the next.
SELECT asset_id, symbol, count() AS returns, round(stddevSamp(log(close / earlier.1)), 6) AS volatility
FROM
(
    SELECT asset_id, symbol, toStartOfHour(observed_at) AS hour, argMax(p.price, p.observed_at) AS close,
        lagInFrame((close, hour)) OVER (PARTITION BY asset_id ORDER BY hour) AS earlier
    FROM price AS p
    WHERE observed_at >= now('UTC') - INTERVAL 7 DAY
    GROUP BY asset_id, symbol, hour
)
WHERE hour = earlier.2 + INTERVAL 1 HOUR AND close > 0 AND earlier.1 > 0
GROUP BY asset_id, symbol
HAVING returns > 1
ORDER BY volatility DESC, asset_id;
