-- What was the last observation of each series in each bucket? `series` is the position of the asset in ids, from 0; for
-- any other asset it is the number of ids. `close` is null where that says that there is no value. Filters are on the sort key alone, so rows may be left out before FINAL.
SELECT
    toUInt32(transform(asset_id, {ids:Array(String)}, range(length({ids:Array(String)})), length({ids:Array(String)})))
        AS series,
    toUnixTimestamp(max(p.last_at)) AS last_at,
    if(argMax(p.known, p.last_at), toString(argMax(p.close, p.last_at)), NULL) AS close
FROM ({parts}) AS p
GROUP BY asset_id, roundDown(toUnixTimestamp(p.first_at), {bounds:Array(UInt32)})
SETTINGS optimize_move_to_prewhere_if_final = 1
