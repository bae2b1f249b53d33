-- What does each lend market hold at a snapshot, and what did it pay so far?
SELECT asset_id, apr, toString(principal) AS principal, toString(receipt_supply) AS receipt_supply,
    toString(interest_paid) AS interest_paid
FROM market_lend
WHERE observed_at = toDateTime({at:UInt32}, 'UTC')
ORDER BY asset_id, version DESC
LIMIT 1 BY asset_id
