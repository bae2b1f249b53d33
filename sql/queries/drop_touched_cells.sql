-- Deletes the cells of all widths that had observations which a rewrite takes out. Those with others are computed again.
-- A mutation executes its subqueries for each part of the table, so that this one reads nothing else.
DELETE FROM cell{local}{on_cluster}
WHERE (history, width, asset_id, cell) IN
    (
        SELECT history, c.1, asset_id, c.2
        FROM {removed}{local}
        ARRAY JOIN {cells} AS c
    )
SETTINGS lightweight_deletes_sync = 2
