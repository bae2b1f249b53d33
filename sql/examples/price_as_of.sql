-- What was each asset worth at an instant? Prices of the 7 days before it count, which keeps this cheap.
-- Set `as_of` to the instant, and widen that window for prices that stand still for longer.
WITH toDateTime('2026-01-01 12:00:00', 'UTC') AS as_of
SELECT asset_id, max(p.observed_at) AS observed_at, argMax(p.price, p.observed_at) AS price
FROM price AS p
WHERE p.observed_at <= as_of AND p.observed_at > as_of - INTERVAL 7 DAY
GROUP BY asset_id
ORDER BY asset_id;
