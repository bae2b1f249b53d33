-- Deletes the source's events that are later than the newest snapshot left, if a rewrite takes out snapshots: those that
-- their runs have brought, and those that a run which died had left to them.
DELETE FROM account_event{local}{on_cluster}
WHERE brought_by = 'source'
  AND version < {version}
  AND (SELECT count() FROM {staged} WHERE kind IN ('-job', '-backfill')) > 0
  AND at > (SELECT max(at) FROM snapshot WHERE family = 'loans' AND kind IN ('job', 'backfill'))
SETTINGS lightweight_deletes_sync = 2, mutations_execute_subqueries_on_initiator = 1
