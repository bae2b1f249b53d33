-- Deletes the cells of a width (day or month) without cells of the next smaller width, of those that a rewrite has touched.
DELETE FROM cell{local}{on_cluster} IN PARTITION ('{width}', 0)
WHERE (history, asset_id, cell) IN
    (
        SELECT history, asset_id, if('{width}' = 'day', toStartOfDay(observed_at), toDateTime(toStartOfMonth(observed_at), 'UTC'))
        FROM {removed}{local}
    )
  AND (history, asset_id, cell) NOT IN
    (
        SELECT history, asset_id, if('{width}' = 'day', toStartOfDay(cell), toDateTime(toStartOfMonth(cell), 'UTC'))
        FROM cell{local}
        WHERE width = if('{width}' = 'day', 'quarter', 'day')
          AND (history, asset_id) IN (SELECT history, asset_id FROM {removed}{local})
    )
SETTINGS lightweight_deletes_sync = 2
