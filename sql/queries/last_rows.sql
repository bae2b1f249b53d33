-- What was the last observation of each series in each bucket? `series` is the position of the asset in ids, from 0; for
-- any other asset it is the number of ids. It takes half as long as to tell all that was observed, and a second thread
-- costs more than it saves.
SELECT
    toUInt32(transform(asset_id, {ids:Array(String)}, range(length({ids:Array(String)})), length({ids:Array(String)})))
        AS series,
    toUnixTimestamp(max(p.last_at)) AS last_at,
    toString(argMax(p.close, p.last_at)) AS close
FROM ({parts}) AS p
GROUP BY asset_id, roundDown(toUnixTimestamp(p.first_at), {bounds:Array(UInt32)})
SETTINGS max_threads = 1
