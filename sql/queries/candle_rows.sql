-- What is the summary of a page's parts in each bucket? `series` is the position of the asset in ids, from 0; for any
-- other asset it is the number of ids. `area` is the sum of each value times the seconds that it held, from the first
-- to the last observation in the bucket, as whole units and as 10^-18 of them.
SELECT
    transform(asset_id, {ids:Array(String)}, range(length({ids:Array(String)})), length({ids:Array(String)})) AS series,
    bucket,
    toUnixTimestamp(min(p.first_at)) AS first_at,
    toUInt32(sum(p.count)) AS count,
    toString(argMin(p.open, p.first_at)) AS open,
    toString(max(p.high)) AS high,
    toString(min(p.low)) AS low,
    toDecimal128(floor(sum(p.area + p.until_next) AS total), 0) AS units,
    toUInt64((total - floor(total)) * 1000000000000000000) AS rest
FROM
(
    SELECT
        asset_id,
        first_at,
        count,
        open,
        high,
        low,
        area,
        roundDown(toUnixTimestamp(first_at), {bounds:Array(UInt32)}) AS bucket,
        leadInFrame(first_at) OVER (
            PARTITION BY asset_id ORDER BY first_at ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS next_at,
        if(next_at > last_at AND roundDown(toUnixTimestamp(next_at), {bounds:Array(UInt32)}) = bucket,
            next_at - last_at, 0) * toDecimal256(close, 18) AS until_next
    FROM ({parts})
) AS p
GROUP BY asset_id, bucket
