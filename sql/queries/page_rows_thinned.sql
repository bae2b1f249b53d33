-- The last row of each series and bucket among a page's parts; series is the asset's place in ids, from 0, behind the
-- last one for any other asset.
SELECT
    transform(asset_id, {ids:Array(String)}, range(length({ids:Array(String)})), length({ids:Array(String)})) AS series,
    max(p.observed_at) AS observed_at,
    toString(argMax(p.value, bitShiftLeft(toUInt128(toUnixTimestamp(p.observed_at)), 64) + p.rank)) AS value,
    toUInt64(0) AS rank
FROM ({parts}) AS p
GROUP BY asset_id, roundDown(toUnixTimestamp(p.observed_at), {bounds:Array(UInt32)})
