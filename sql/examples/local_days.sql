-- What was the closing price of each asset on each day of the last year, in a time zone with daylight saving time?
SELECT toDate(observed_at, 'America/New_York') AS day, asset_id, symbol, argMax(p.price, p.observed_at) AS close
FROM price AS p
WHERE observed_at >= toStartOfDay(now('America/New_York')) - INTERVAL 365 DAY
  AND observed_at < toStartOfDay(now('America/New_York'))
GROUP BY day, asset_id, symbol
ORDER BY symbol, asset_id, day;
