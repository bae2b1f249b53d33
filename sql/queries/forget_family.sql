-- Deletes rows of a family in the ledger, or its head, if no run is left of those before a rewrite. Runs that are listed
-- meanwhile have greater versions.
DELETE FROM {table}
WHERE family = '{family}'
  AND version <= {version}
  AND (SELECT version FROM ({ends})) = 0
SETTINGS lightweight_deletes_sync = 2, mutations_execute_subqueries_on_initiator = 1
