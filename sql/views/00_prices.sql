-- The price of each asset as of an instant. Fills {prices}, after {functions}, {instant} and the alias markets. Later
-- observations are of incomplete commits, and later rollups are not closed.
(
    SELECT toDateTime(least(instant, max(last_observed_at)), 'UTC')
    FROM snapshot
    WHERE dataset = 'prices' AND kind != 'assets'
    HAVING NOT throwIf(min(first_observed_at) > instant, concat('Prices begin at ', (
        SELECT toString(min(first_observed_at)) FROM snapshot WHERE dataset = 'prices' AND kind != 'assets')))
) AS moment,
-- The snapshot from which the age of prices counts. Imported history alone has none.
(SELECT maxOrNull(at) FROM snapshot WHERE dataset = 'prices' AND kind IN ('job', 'backfill') AND at <= instant) AS taken,
-- The assets that have ended by that snapshot.
(SELECT groupArray(asset_id) FROM all_assets WHERE ended_at < ifNull(taken, instant)) AS ended,
quoted AS
(
    SELECT
        asset_id,
        max(last_at) AS observed_at,
        if(dateDiff('second', observed_at, taken) > {price_max_age}, NULL, toFloat64(argMax(value, last_at))) AS price
    FROM
    (
        SELECT asset_id, last_at, close AS value
        FROM rollup FINAL
        WHERE history = 'price'
          AND (width = 'month' AND start < toStartOfMonth(moment)
            OR width = 'day' AND start >= toStartOfMonth(moment) AND start < toStartOfDay(moment)
            OR width = '15min' AND start >= toStartOfDay(moment) AND start < toStartOfFifteenMinutes(moment))

        UNION ALL

        SELECT asset_id, observed_at, value
        FROM observation FINAL
        WHERE history = 'price' AND observed_at >= toStartOfFifteenMinutes(moment) AND observed_at <= moment
    )
    WHERE NOT has(ended, asset_id)
    GROUP BY asset_id
),
redeemed AS
(
    SELECT l.asset_id AS asset_id,
        redeemed_by_each(l.principal, l.receipt_supply, a.receipt_decimals - a.decimals) AS ratio
    FROM (SELECT * FROM market_lend FINAL WHERE observed_at = markets.1 AND version = markets.2) AS l
    INNER JOIN all_assets AS a ON a.asset_id = l.asset_id
    WHERE NOT has(ended, a.receipt_id)
),
-- The quotes along the redemption chain of each asset, and the redemption ratio of each step.
priced AS
(
    SELECT
        a.asset_id AS asset_id,
        any(a.symbol) AS symbol,
        groupArrayInsertAt('', 5)(a.origin_id, toUInt8(step - 1)) AS line,
        groupArrayInsertAt(nan, 5)(if(q.asset_id = '', nan, ifNull(q.price, inf)), toUInt8(step - 1)) AS quotes,
        groupArrayInsertAt(toDateTime('1970-01-01', 'UTC'), 5)(q.observed_at, toUInt8(step - 1)) AS times,
        groupArrayInsertAt(nan, 5)(if(step = 1 OR r.asset_id = '', NULL, r.ratio), toUInt8(greatest(step, 2) - 2)) AS ratios,
        price_on_line(quotes, ratios) AS price,
        -- The first asset of the chain with a quote, or else the first that has lost it.
        coalesce(
            nullIf(arrayFirstIndex(quote -> isFinite(quote), quotes), 0),
            arrayFirstIndex(quote -> isInfinite(quote), quotes)) AS base
    FROM asset_line AS a
    LEFT JOIN quoted AS q ON q.asset_id = a.origin_id
    LEFT JOIN redeemed AS r ON r.asset_id = a.origin_id
    WHERE NOT has(ended, a.asset_id)
    GROUP BY asset_id
    HAVING NOT isNaN(price)
    SETTINGS join_use_nulls = 0
),
prices AS
(
    SELECT
        toString(p.asset_id) AS asset_id,
        toString(p.symbol) AS symbol,
        if(isFinite(p.price), p.price, NULL) AS price,
        toDateTime64(times[base], 3, 'UTC') AS observed_at,
        toBool(base > 1) AS follows,
        toString(line[base]) AS priced_by,
        instant_of(markets.1) AS markets_at,
        instant_of(taken) AS prices_at
    FROM priced AS p
)
