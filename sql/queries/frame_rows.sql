-- What was observed of each series in each bucket? `series` is the position of the asset in ids, from 0; for any other
-- asset it is the number of ids. `area` is the sum of each value times the seconds that it held, from the first to the
-- last observation in the bucket, as whole units and as 10^-18 of them, and `seconds` are those that had a value.
-- Observations without a value are not counted. Filters are on the sort key alone, so rows may be left out before FINAL.
SELECT
    toUInt32(transform(asset_id, {ids:Array(String)}, range(length({ids:Array(String)})), length({ids:Array(String)})))
        AS series,
    toUnixTimestamp(min(p.first_at)) AS first_at,
    toUnixTimestamp(max(p.last_at)) AS last_at,
    toUInt32(sum(p.count)) AS count,
    argMinOrNullIf(p.open, p.first_at, p.count > 0) AS open,
    maxOrNullIf(p.high, p.count > 0) AS high,
    minOrNullIf(p.low, p.count > 0) AS low,
    if(argMax(p.known, p.last_at), toString(argMax(p.close, p.last_at)), NULL) AS close,
    toUInt32(sum(p.seconds + p.seconds_until_first)) AS seconds,
    toDecimal128(floor(sum(p.area + p.until_first) AS total), 0) AS units,
    toUInt64((total - floor(total)) * 1000000000000000000) AS rest
FROM
(
    SELECT
        asset_id,
        first_at,
        last_at,
        count,
        known,
        seconds,
        open,
        high,
        low,
        close,
        area,
        roundDown(toUnixTimestamp(first_at), {bounds:Array(UInt32)}) AS bucket,
        (toUnixTimestamp(first_at) - toUnixTimestamp(lagInFrame(last_at, 1, first_at) OVER earlier))
            * (lagInFrame(known) OVER earlier) AS seconds_until_first,
        seconds_until_first * toDecimal256(lagInFrame(close) OVER earlier, 18) AS until_first
    FROM ({parts})
    WINDOW earlier AS (
        PARTITION BY asset_id, bucket ORDER BY first_at ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
) AS p
GROUP BY asset_id, bucket
SETTINGS optimize_move_to_prewhere_if_final = 1
