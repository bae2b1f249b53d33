-- Deletes rows of a family in the ledger, or its head, if it has no run left.
DELETE FROM {table}
WHERE family = '{family}'
  AND (SELECT version FROM ({ends})) = 0
SETTINGS lightweight_deletes_sync = 2, mutations_execute_subqueries_on_initiator = 1
