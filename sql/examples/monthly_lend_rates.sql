-- What was the lend APR of each asset in each of the last 12 months, weighted by time?
-- The mean of daily means, from the day of its first rate on, and without today.
SELECT toStartOfMonth(day) AS month, asset_id, symbol, round(avg(mean), 6) AS mean_apr
FROM lend_rate_daily
WHERE day >= toStartOfMonth(now('UTC')) - INTERVAL 11 MONTH
GROUP BY month, asset_id, symbol
ORDER BY month, symbol, asset_id;
