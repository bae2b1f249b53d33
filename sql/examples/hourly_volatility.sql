-- How volatile was each asset over the last week? Standard deviation of its log returns from one hour to the next.
-- Only complete hours with a price count: in others, the last price is carried forward.
SELECT asset_id, symbol, count() AS returns, round(stddevSamp(log(close / earlier.1)), 6) AS volatility
FROM
(
    SELECT *, lagInFrame((close, hour)) OVER (PARTITION BY asset_id ORDER BY hour) AS earlier
    FROM price_hourly
    WHERE hour >= now('UTC') - INTERVAL 7 DAY AND observations > 0
)
WHERE hour = earlier.2 + INTERVAL 1 HOUR AND close > 0 AND earlier.1 > 0
GROUP BY asset_id, symbol
HAVING returns > 1
ORDER BY volatility DESC, asset_id;
