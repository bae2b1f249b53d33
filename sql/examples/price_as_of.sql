-- What was each asset worth at an instant, here a week ago? `observed_at` says from when the price was. Null if it was
-- too old.
SELECT asset_id, symbol, price, observed_at
FROM price_at(time = toUnixTimestamp(now() - INTERVAL 7 DAY))
ORDER BY symbol, asset_id;
