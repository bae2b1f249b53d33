-- What was the spread between borrow and lend APR of each asset at the end of each of the last 30 days?
SELECT toDate(observed_at) AS day, asset_id, symbol, borrow_apr, lend_apr, borrow_apr - lend_apr AS spread
FROM market_day
WHERE observed_at >= toStartOfDay(now('UTC')) - INTERVAL 30 DAY
  AND observed_at < toStartOfDay(now('UTC'))
  AND spread IS NOT NULL
ORDER BY day, spread DESC, asset_id;
