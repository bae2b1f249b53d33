-- What are the rules of all borrowing at a snapshot?
SELECT *
FROM market_config
WHERE observed_at = toDateTime({at:UInt32}, 'UTC')
ORDER BY observed_at, version DESC
LIMIT 1 BY observed_at
