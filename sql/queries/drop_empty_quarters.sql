-- Deletes the cells of quarter hours of a month without observations, of those that a rewrite has touched.
DELETE FROM cell{local}{on_cluster} IN PARTITION ('quarter', {month})
WHERE (history, asset_id, cell) IN
    (
        SELECT history, asset_id, toStartOfFifteenMinutes(observed_at)
        FROM {removed}{local}
        WHERE toYYYYMM(observed_at) = {month}
    )
  AND (history, asset_id, cell) NOT IN
    (
        SELECT history, asset_id, toStartOfFifteenMinutes(observed_at)
        FROM observation{local}
        WHERE toYYYYMM(observed_at) = {month}
          AND (history, asset_id) IN (SELECT history, asset_id FROM {removed}{local})
    )
SETTINGS lightweight_deletes_sync = 2
