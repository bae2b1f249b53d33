-- What did all flash loans come to at a snapshot?
SELECT usd
FROM flash_loan_volume
WHERE observed_at = toDateTime({at:UInt32}, 'UTC')
ORDER BY version DESC
LIMIT 1
