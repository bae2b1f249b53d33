-- Values that may be wrong.

-- A level is a sequence of values that are each near the value before. Folding a series reads only the ends of levels.
CREATE OR REPLACE VIEW anomalies{on_cluster}
(
    observed_at DateTime64(3, 'UTC') COMMENT 'Instant of the value',
    kind String COMMENT 'Kind of anomaly: zero (a price of 0), jump (a price beyond the factor), fall or rise (a total below half or above twice the value before)',
    history String COMMENT 'Name of the history: price, tvl, deposits_usd, collateral_usd or debt_usd',
    asset_id String COMMENT 'Asset id. The empty string stands for the total over all assets',
    symbol String COMMENT 'Symbol of the asset, as it is defined now. Empty for the total',
    value Float64 COMMENT 'The value, in USD',
    before Nullable(Float64) COMMENT 'The last value before that is no anomaly, in USD. Null if there is none'
)
AS WITH
{start},
{end},
((base_at, at) -> base_at > 0 AND at - base_at <= {price_max_age}) AS is_recent,
((is_price, base, usd) -> if(is_price,
    base > 0 AND usd > 0 AND usd <= base * {factor:Float64} AND base <= usd * {factor:Float64},
    base = 0 OR (usd <= base * 2 AND base <= usd * 2))) AS is_near,
-- Series whose values in the range differ enough: no value of the others can be marked. Old versions do no harm.
uneven AS
(
    SELECT history, asset_id
    FROM observation
    WHERE history IN ('price', 'tvl', 'deposits_usd', 'collateral_usd', 'debt_usd')
      AND observed_at >= start_at - INTERVAL {price_max_age} SECOND AND observed_at < end_at AND known
    GROUP BY history, asset_id
    HAVING NOT is_near(history = 'price', toFloat64(max(value)), toFloat64(min(value)))
),
neighbors AS
(
    SELECT
        history,
        asset_id,
        history = 'price' AS is_price,
        toUnixTimestamp(observed_at) AS at,
        toFloat64(value) AS usd,
        lagInFrame(at) OVER w AS before_at,
        lagInFrame(usd) OVER w AS before,
        leadInFrame(at) OVER w AS after_at,
        leadInFrame(usd) OVER w AS after
    FROM observation FINAL
    WHERE (history, asset_id) IN uneven
      AND observed_at >= start_at - INTERVAL {price_max_age} SECOND AND observed_at < end_at AND known
    WINDOW w AS (PARTITION BY history, asset_id ORDER BY observed_at ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING)
),
level_ends AS
(
    SELECT
        *,
        NOT (is_recent(before_at, at) AND is_near(is_price, before, usd)) AS is_first,
        NOT (is_recent(at, after_at) AND is_near(is_price, usd, after)) AS is_last
    FROM neighbors
    WHERE is_first OR is_last
),
-- The first value of a level is marked if it is far from the base, the last unmarked value. A level of two values or more
-- is the new base.
folded AS
(
    SELECT
        history,
        asset_id,
        arrayFold(
            (state, row) -> if(
                row.3 AND (row.5 AND row.2 = 0 OR is_recent(state.2, row.1) AND NOT is_near(row.5, state.1, row.2)),
                (
                    if(row.4, state.1, row.2),
                    if(row.4, state.2, row.1),
                    arrayPushBack(state.3, (row.1, row.2, if(is_recent(state.2, row.1), state.1, nan)))
                ),
                (row.2, row.1, state.3)),
            arraySort(groupArray((at, usd, is_first, is_last, is_price))),
            (toFloat64(0), toUInt32(0), CAST([], 'Array(Tuple(UInt32, Float64, Float64))'))).3 AS marked
    FROM level_ends
    GROUP BY history, asset_id
)
SELECT
    toDateTime64(mark.1, 3, 'UTC') AS observed_at,
    multiIf(f.history != 'price', if(mark.2 < mark.3, 'fall', 'rise'), mark.2 = 0, 'zero', 'jump') AS kind,
    toString(f.history) AS history,
    toString(f.asset_id) AS asset_id,
    toString(a.symbol) AS symbol,
    mark.2 AS value,
    if(isNaN(mark.3), NULL, mark.3) AS before
FROM folded AS f
ARRAY JOIN marked AS mark
LEFT JOIN (SELECT id, argMax(symbol, (defined_at, version)) AS symbol FROM asset_definition GROUP BY id) AS a ON a.id = f.asset_id
WHERE observed_at >= start_at
SETTINGS join_use_nulls = 0
COMMENT 'Values in [start, end) that may be wrong. If a new level lasts, only its first value is shown: FROM anomalies(start = \'2026-03-01T00:00:00Z\', end = \'2026-03-02T00:00:00Z\', factor = 3)';
