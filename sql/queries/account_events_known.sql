-- Did a completed run write events up to an instant?
SELECT 1 AS known
FROM account_event
WHERE at <= toDateTime({until:UInt32}, 'UTC')
  AND version IN (SELECT version FROM snapshot WHERE family = 'loans')
LIMIT 1
SETTINGS max_threads = 1
