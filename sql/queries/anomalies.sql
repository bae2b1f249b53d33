-- Which values since an instant are in doubt, and were not corrected since? The newest first.
SELECT
    history,
    asset_id,
    symbol,
    toUnixTimestamp(observed_at) AS observed_at,
    what,
    value_exact AS value,
    toUnixTimestamp(before_at) AS before_at,
    before_exact AS before
FROM anomalies_since(time = {time:String})
ORDER BY observed_at DESC, history, asset_id
LIMIT 10000
