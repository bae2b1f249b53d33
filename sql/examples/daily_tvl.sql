-- How much of each asset was locked at the end of each of the last 30 days, in USD? Null for assets without a price.
SELECT toDate(observed_at) AS day, asset_id, symbol, tvl_usd
FROM market_day
WHERE observed_at >= toStartOfDay(now('UTC')) - INTERVAL 30 DAY AND observed_at < toStartOfDay(now('UTC'))
ORDER BY day, tvl_usd DESC, asset_id;
