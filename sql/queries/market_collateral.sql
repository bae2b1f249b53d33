-- What are the rules and the state of each collateral market at a snapshot?
SELECT asset_id, enabled, allowable_ltv, liquidation_ltv, toString(collateral_cap) AS collateral_cap, min_discount, max_discount,
    toString(balance) AS balance, toString(shares) AS shares
FROM market_collateral
WHERE observed_at = toDateTime({at:UInt32}, 'UTC')
ORDER BY asset_id, version DESC
LIMIT 1 BY asset_id
