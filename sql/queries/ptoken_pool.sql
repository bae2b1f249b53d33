-- What are the staking pools at a snapshot?
SELECT pool AS index, duration, reward_weight, gov_weight, health_weight, flash_loan_weight, toString(total_bonded) AS total_bonded
FROM ptoken_pool
WHERE observed_at = toDateTime({at:UInt32}, 'UTC')
ORDER BY pool, version DESC
LIMIT 1 BY pool
