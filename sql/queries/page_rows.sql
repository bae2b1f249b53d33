-- All rows of a page's parts; series is the asset's place in ids, from 0.
SELECT
    transform(asset_id, {ids:Array(String)}, range(length({ids:Array(String)})), 0) AS series,
    observed_at,
    value,
    rank
FROM ({parts})
