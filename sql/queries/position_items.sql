-- Which items do some addresses have as of an instant?
SELECT *
FROM
(
    SELECT
        address, kind, account_index, asset_id, pool, item,
        toString(amount) AS amount, cascade, until, last_stake_acc, closed
    FROM position
    WHERE address IN {addresses:Array(String)}
      AND observed_at <= toDateTime({at:UInt32}, 'UTC')
    ORDER BY address, kind, account_index, asset_id, pool, item, observed_at DESC, version DESC
    LIMIT 1 BY address, kind, account_index, asset_id, pool, item
)
WHERE NOT closed
