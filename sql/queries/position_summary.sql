-- How many positions are there at a snapshot?
SELECT *
FROM position_summary
WHERE observed_at = toDateTime({at:UInt32}, 'UTC')
ORDER BY version DESC
LIMIT 1
