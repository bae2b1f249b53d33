-- All rows of a page's parts. `series` is the position of the asset in ids, from 0; for any other asset it is the
-- number of ids. A page of narrow buckets reads little, and nearly all of what it touches: a second thread, or reading
-- the filter's columns first, costs more than it saves.
SELECT
    transform(asset_id, {ids:Array(String)}, range(length({ids:Array(String)})), length({ids:Array(String)})) AS series,
    observed_at,
    toString(value) AS value,
    rank
FROM ({parts})
SETTINGS max_threads = 1, optimize_move_to_prewhere = 0
