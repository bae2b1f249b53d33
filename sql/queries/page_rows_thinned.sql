-- The last row of each series and bucket among a page's parts. `series` is the position of the asset in ids, from 0;
-- for any other asset it is the number of ids.
SELECT
    transform(asset_id, {ids:Array(String)}, range(length({ids:Array(String)})), length({ids:Array(String)})) AS series,
    max(p.observed_at) AS observed_at,
    toString(argMax(p.value, bitShiftLeft(toUInt128(toUnixTimestamp(p.observed_at)), 64) + p.rank)) AS value,
    toUInt64(0) AS rank
FROM ({parts}) AS p
GROUP BY asset_id, roundDown(toUnixTimestamp(p.observed_at), {bounds:Array(UInt32)})
