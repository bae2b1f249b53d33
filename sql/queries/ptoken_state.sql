-- What is the state of the protocol token at a snapshot?
SELECT asset_id, toString(emission_rate) AS emission_rate, toString(tokens_per_weight) AS tokens_per_weight,
    toString(total_issued) AS total_issued, toString(total_claimed) AS total_claimed,
    toString(total_locked) AS total_locked, toString(total_supply) AS total_supply,
    rewards_last_distributed, stake_acc
FROM ptoken_state
WHERE observed_at = toDateTime({at:UInt32}, 'UTC')
ORDER BY observed_at, version DESC
LIMIT 1 BY observed_at
