-- What was the price of each asset at an instant, here a week ago? `observed_at` is the instant of the price. A
-- price that was too old is null.
SELECT asset_id, symbol, price, observed_at
FROM price_at(time = toUnixTimestamp(now() - INTERVAL 7 DAY))
ORDER BY symbol, asset_id;
