-- How do rates depend on utilization? Medians over the hours of the last 30 days, by tenths of utilization.
SELECT asset_id, symbol, floor(utilization, 1) AS utilization_from, count() AS hours,
    round(quantileExactInclusive(0.5)(borrow_apr), 6) AS median_borrow_apr,
    round(quantileExactInclusive(0.5)(lend_apr), 6) AS median_lend_apr
FROM market_hour
WHERE observed_at >= now('UTC') - INTERVAL 30 DAY AND borrow_apr IS NOT NULL AND utilization IS NOT NULL
GROUP BY asset_id, symbol, utilization_from
ORDER BY symbol, asset_id, utilization_from;
