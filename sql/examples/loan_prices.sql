-- What was the price of the asset at each loan of the last week? The last one by then, and its age in seconds.
-- Null where there was none in the 30 days before that week.
SELECT l.time, l.asset_id, l.symbol, l.address, l.units, p.price, dateDiff('second', p.observed_at, l.time) AS age
FROM (SELECT * FROM loan WHERE time >= now('UTC') - INTERVAL 7 DAY) AS l
ASOF LEFT JOIN
(
    SELECT asset_id, observed_at, price
    FROM price
    WHERE observed_at >= now('UTC') - INTERVAL 37 DAY
) AS p ON p.asset_id = l.asset_id AND p.observed_at <= l.time
ORDER BY l.time, l.id
SETTINGS join_use_nulls = 1;
