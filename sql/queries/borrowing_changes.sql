-- What had all borrow accounts posted, owed and staked at the start of a range, and which of it changed until its end? Rows
-- count once the ledger lists their run.
SELECT {key}, observed_at, toString(amount) AS amount, liquidation_ltv, closed
FROM position
WHERE kind IN {kinds:Array(String)}
  AND observed_at <= toDateTime({end:UInt32}, 'UTC')
  AND (observed_at, version) IN (SELECT at, version FROM snapshot WHERE family = 'positions')
ORDER BY {key}, observed_at DESC
LIMIT 1 BY {key}, greatest(observed_at, toDateTime({start:UInt32}, 'UTC'))
