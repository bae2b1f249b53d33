-- Deletes the observations of a month that a rewrite takes out: all rows with their keys that are older than the rewrite.
DELETE FROM observation{local}{on_cluster} IN PARTITION {month}
WHERE (history, asset_id, observed_at) IN
    (SELECT history, asset_id, observed_at FROM {removed}{local} WHERE toYYYYMM(observed_at) = {month})
  AND version < {version}
SETTINGS lightweight_deletes_sync = 2
