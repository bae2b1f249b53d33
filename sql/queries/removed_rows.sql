-- The rows of a history's view that a rewrite takes out.
SELECT v.*
FROM {view} AS v
INNER JOIN (SELECT asset_id, observed_at FROM {removed} WHERE history = '{view}') AS r
    ON v.asset_id = r.asset_id AND v.observed_at = toDateTime64(r.observed_at, 3, 'UTC')
