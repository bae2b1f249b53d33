-- Deletes the observations that a rewrite takes out: all rows with their keys that are older than the rewrite. A mutation
-- makes every part of the table anew, so it is one for all months.
DELETE FROM observation{local}{on_cluster}
WHERE (history, asset_id, observed_at) IN (SELECT history, asset_id, observed_at FROM {removed}{local})
  AND version < {version}
SETTINGS lightweight_deletes_sync = 2
