-- What had the borrow accounts of a range of addresses posted, owed and staked at an instant? Rows count once the ledger
-- lists their run.
SELECT address, kind, account_index, asset_id, pool, toString(amount) AS amount, liquidation_ltv
FROM
(
    SELECT {key}, amount, liquidation_ltv, closed
    FROM position
    WHERE kind IN {kinds:Array(String)}
      AND address >= {first:String}
      AND address < {end:String}
      AND observed_at <= toDateTime({at:UInt32}, 'UTC')
      AND (observed_at, version) IN (SELECT at, version FROM snapshot WHERE family = 'positions')
    ORDER BY {key}, observed_at DESC
    LIMIT 1 BY {key}
)
WHERE NOT closed
