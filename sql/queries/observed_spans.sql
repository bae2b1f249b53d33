-- When was each asset first and last observed?
SELECT
    toString(asset_id) AS asset_id,
    toUnixTimestamp(min(observed_at)) AS first,
    toUnixTimestamp(max(observed_at)) AS last
FROM observation
WHERE asset_id != ''
GROUP BY asset_id
ORDER BY asset_id
