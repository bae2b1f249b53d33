-- What are the rules and the state of each debt market at a snapshot?
SELECT asset_id, enabled, toString(borrow_cap) AS borrow_cap, borrow_halt_utilization, interest_fee, apr,
    toString(balance) AS balance, toString(shares) AS shares, time_last_distributed_interest, utilization_accumulator
FROM market_debt
WHERE observed_at = toDateTime({at:UInt32}, 'UTC')
ORDER BY asset_id, version DESC
LIMIT 1 BY asset_id
