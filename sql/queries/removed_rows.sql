-- The rows of a history's view that a rewrite takes out, of a range of time.
SELECT *
FROM {view}
WHERE asset_id IN (SELECT asset_id FROM {removed} WHERE history = '{view}')
  AND observed_at >= toDateTime({since:UInt32}, 'UTC') AND observed_at < toDateTime({until:UInt32}, 'UTC')
  AND (asset_id, toDateTime(observed_at, 'UTC')) IN
    (SELECT asset_id, observed_at FROM {removed} WHERE history = '{view}')
