-- Means and candles by the hour and the day, as the HTTP service has them. A condition on asset_id reads the rollups of
-- these assets only; a condition on time reads all.

CREATE OR REPLACE VIEW {name}{on_cluster}
(
    asset_id LowCardinality(String) COMMENT 'Asset id',
    symbol String COMMENT 'Symbol of the asset, as it is defined now',
    {unit} {type} COMMENT '{meaning}',
    mean Float64 COMMENT 'Mean weighted by the time for which each value was valid, from the first observation of the asset on. Seconds without a known value do not count',
    open Nullable(Float64) COMMENT 'First value observed. Null, like high and low, if nothing was observed',
    high Nullable(Float64) COMMENT 'Greatest value observed',
    low Nullable(Float64) COMMENT 'Least value observed',
    close Nullable(Float64) COMMENT 'Value at the end of the period, carried forward if nothing was observed. Null if it is no longer known',
    observations UInt64 COMMENT 'Number of values observed'
)
AS WITH
-- Rollups that end later are not closed (rule 8.11, closed rollups).
(
    SELECT toUInt32(least(max(last_observed_at), now('UTC'))) + 1
    FROM snapshot
    WHERE dataset = '{dataset}' AND kind IN ('job', 'backfill', 'import')
      AND (at <= now('UTC') + INTERVAL 60 SECOND OR kind = 'import')
) AS reached,
toUInt32(intDiv(ifNull(reached, 0), {seconds}) * {seconds}) AS closed,
rollups AS
(
    SELECT
        asset_id, toUInt32({begin}) AS begin, toUInt32(first_at) AS first, toUInt32(last_at) AS last, count, known,
        open, high, low, toDecimal256(close, 18) AS value,
        leadInFrame(toUInt32(first_at), 1, closed) OVER near AS next,
        if(next < begin + {seconds}, known * (next - last), 0) AS seconds_after,
        -- The last value before the {unit} is valid until the first observation in it.
        lagInFrame(toUInt32(last_at), 1, 0) OVER near < begin AS is_first,
        is_first * (lagInFrame(known, 1, false) OVER near) * (first - begin) AS seconds_before,
        seconds + seconds_after + seconds_before AS held,
        area + value * seconds_after + (lagInFrame(value) OVER near) * seconds_before AS held_area
    FROM rollup FINAL
    WHERE history = '{history}' AND width = '{width}' AND {begin} < toDateTime(closed, 'UTC')
    WINDOW near AS (PARTITION BY asset_id ORDER BY start ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING)
),
buckets AS
(
    SELECT
        asset_id,
        begin,
        sum(count) AS observed,
        argMinIf(open, first, count > 0) AS opening,
        maxIf(high, count > 0) AS greatest,
        minIf(low, count > 0) AS smallest,
        argMax(value, first) AS closing,
        argMax(known, first) AS is_known,
        max(last) AS last_at,
        intDiv(max(next), {seconds}) * {seconds} AS next_begin,
        sum(held) AS seconds,
        sum(held_area) AS area
    FROM rollups
    GROUP BY asset_id, begin
)
SELECT
    b.asset_id AS asset_id,
    b.symbol AS symbol,
    {label} AS {unit},
    toFloat64(if(second = b.begin AND b.seconds > 0, b.area / greatest(b.seconds, 1), b.closing)) AS mean,
    if(second = b.begin AND b.observed > 0, toFloat64(b.opening), NULL) AS open,
    if(second = b.begin AND b.observed > 0, toFloat64(b.greatest), NULL) AS high,
    if(second = b.begin AND b.observed > 0, toFloat64(b.smallest), NULL) AS low,
    if(b.is_known, toFloat64(b.closing), NULL) AS close,
    if(second = b.begin, b.observed, 0) AS observations
FROM
(
    SELECT
        u.* EXCEPT (seconds, area),
        a.symbol AS symbol,
        -- An ended asset has no more values.
        ifNull(toUnixTimestamp(a.ended_at) + 1, 4294967296) AS until,
        is_known * greatest(least(begin + {seconds}, until) - last_at, 0) AS tail,
        u.seconds + tail AS seconds,
        u.area + closing * tail AS area,
        range(begin, least(next_begin, until), {seconds}) AS begins
    FROM buckets AS u
    LEFT JOIN all_assets AS a ON a.asset_id = u.asset_id
) AS b
ARRAY JOIN begins AS second
WHERE b.is_known OR second = b.begin AND b.seconds > 0
SETTINGS join_use_nulls = 0
COMMENT 'A row for each asset and period, from its first value to the last period that has ended, even if nothing was observed. So a plain mean of means is weighted by time, except for the first period';
