-- All rows of a page's parts; series is the asset's place in ids, from 0, behind the last one for any other asset.
-- A page of narrow buckets reads little, and nearly all of what it touches: a second thread or a first pass over the
-- filter's columns costs more than it saves.
SELECT
    transform(asset_id, {ids:Array(String)}, range(length({ids:Array(String)})), length({ids:Array(String)})) AS series,
    observed_at,
    toString(value) AS value,
    rank
FROM ({parts})
SETTINGS max_threads = 1, optimize_move_to_prewhere = 0
