-- Deletes the events that the runs which a rewrite takes out have brought, if they are later than the newest snapshot left.
DELETE FROM {table}{local}{on_cluster}
WHERE brought_by = 'source'
  AND version IN (SELECT version FROM {staged} WHERE kind IN ('-job', '-backfill'))
  AND at > (SELECT max(at) FROM snapshot WHERE family = 'loans' AND kind IN ('job', 'backfill'))
SETTINGS lightweight_deletes_sync = 2, mutations_execute_subqueries_on_initiator = 1
