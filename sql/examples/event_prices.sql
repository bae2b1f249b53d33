-- What was the price of the asset at each event of the last week? The last price by then, and its age in seconds.
-- Null if there was none in the 30 days before that week, such as for receipt tokens, whose prices follow from others.
SELECT e.time AS time, id, action, leg, e.asset_id AS asset_id, symbol, units, p.price AS price,
    dateDiff('second', p.observed_at, e.time) AS age
FROM (SELECT * FROM events WHERE time >= now('UTC') - INTERVAL 7 DAY) AS e
ASOF LEFT JOIN
(
    SELECT asset_id, observed_at, price
    FROM price
    WHERE observed_at >= now('UTC') - INTERVAL 37 DAY
) AS p ON p.asset_id = e.asset_id AND p.observed_at <= e.time
ORDER BY e.time, e.id
-- Without this, a missing price is 0.
SETTINGS join_use_nulls = 1;
