-- What was the closing price of each asset on each day of the last year, in a time zone with daylight saving time?
-- The zone's offset must be whole hours. A day without a price has the price of the day before.
SELECT toDate(hour, 'America/New_York') AS day, asset_id, symbol, argMax(p.close, hour) AS close
FROM price_hourly AS p
WHERE hour >= toStartOfDay(now('America/New_York')) - INTERVAL 365 DAY
  AND hour < toStartOfDay(now('America/New_York'))
GROUP BY day, asset_id, symbol
ORDER BY symbol, asset_id, day;
