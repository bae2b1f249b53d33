-- Deletes the cells of all widths that a rewrite has touched, and that have no observation left.
DELETE FROM cell{local}{on_cluster}
WHERE (history, width, asset_id, cell) IN
    (
        SELECT history, c.1, asset_id, c.2
        FROM {removed}{local}
        ARRAY JOIN {cells} AS c
    )
  AND (history, width, asset_id, cell) NOT IN
    (
        SELECT DISTINCT history, c.1, asset_id, c.2
        FROM observation{local}
        ARRAY JOIN {cells} AS c
        WHERE (history, asset_id) IN (SELECT history, asset_id FROM {removed}{local})
          AND toYYYYMM(observed_at) IN (SELECT toYYYYMM(observed_at) FROM {removed}{local})
    )
SETTINGS lightweight_deletes_sync = 2
