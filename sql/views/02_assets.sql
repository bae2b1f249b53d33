-- Assets and their prices.

CREATE OR REPLACE VIEW all_assets{on_cluster}
(
    asset_id String COMMENT 'Asset id, <group>;<group_key>',
    symbol String COMMENT 'Symbol of a standard unit',
    name String COMMENT 'Full name',
    kind String COMMENT 'Classification: regular, protocol_receipt_token or liquid_staking_token',
    decimals UInt8 COMMENT 'Decimal places between denom and standard units: 10^this denom make one standard unit',
    origin_id String COMMENT 'Id of the asset that a receipt or liquid-staking token represents; else empty',
    receipt_id String COMMENT 'Id of the receipt token of the asset; empty if it has none',
    receipt_decimals UInt8 COMMENT 'Decimal places of the receipt token; those of the asset if nobody has described it',
    ended_at Nullable(DateTime64(3, 'UTC')) COMMENT 'Instant after which the asset has no values any more; null while it goes on'
)
AS WITH defined AS
(
    SELECT
        id,
        argMax(
            (
                symbol, name, kind, decimals_denom, ifNull(origin_asset, ''), ifNull(receipt_asset, ''), ended_at,
                symbol_denom != '', listed_until
            ),
            (defined_at, version)) AS a,
        -- Of an asset that is not listed now, the latest instant counts that any run saw, not that of the last one.
        maxIf(listed_until, listed_until < toDateTime(4294967295)) AS last_listed
    FROM asset_definition
    GROUP BY id
),
linked AS
(
    SELECT d.id AS id, d.a AS a, d.last_listed AS last_listed, if(d.a.6 != '', d.a.6, r.receipt) AS receipt
    FROM defined AS d
    LEFT JOIN
    (
        SELECT a.5 AS origin, min(id) AS receipt
        FROM defined
        WHERE a.3 = 'protocol_receipt_token' AND a.5 != ''
        GROUP BY origin
    ) AS r ON r.origin = d.id
)
SELECT
    d.id AS asset_id,
    d.a.1 AS symbol,
    d.a.2 AS name,
    d.a.3 AS kind,
    d.a.4 AS decimals,
    d.a.5 AS origin_id,
    d.receipt AS receipt_id,
    if(t.a.8, t.a.4, d.a.4) AS receipt_decimals,
    CAST(if(d.a.7 = d.a.9, d.last_listed, d.a.7), 'Nullable(DateTime64(3, \'UTC\'))') AS ended_at
FROM linked AS d
LEFT JOIN defined AS t ON t.id = d.receipt
SETTINGS join_use_nulls = 0
COMMENT 'Every asset that there is or was, as it is defined now';

CREATE OR REPLACE VIEW assets{on_cluster}
(
    asset_id String COMMENT 'Asset id, <group>;<group_key>',
    symbol String COMMENT 'Symbol of a standard unit',
    name String COMMENT 'Full name',
    kind String COMMENT 'Classification: regular, protocol_receipt_token or liquid_staking_token',
    decimals UInt8 COMMENT 'Decimal places between denom and standard units: 10^this denom make one standard unit',
    origin_id String COMMENT 'Id of the asset that a receipt or liquid-staking token represents; else empty',
    receipt_id String COMMENT 'Id of the receipt token of the asset; empty if it has none'
)
AS SELECT * EXCEPT (receipt_decimals, ended_at)
FROM all_assets
WHERE ended_at IS NULL
COMMENT 'Every asset that has not ended, as it is defined now';

CREATE OR REPLACE VIEW asset_line{on_cluster}
(
    asset_id String COMMENT 'Asset id',
    symbol String COMMENT 'Symbol of the asset',
    step UInt8 COMMENT '1 for the asset itself, 2 for what it redeems if it is a receipt token, and so on up to 5',
    origin_id String COMMENT 'Id of the asset of that step'
)
AS WITH
(
    SELECT (groupArray(receipt_id), groupArray(origin))
    FROM (SELECT receipt_id, min(asset_id) AS origin FROM all_assets WHERE receipt_id != '' GROUP BY receipt_id)
) AS links
SELECT asset_id, symbol, toUInt8(number) AS step, line[number] AS origin_id
FROM
(
    SELECT
        asset_id,
        symbol,
        arrayDistinct(arrayFilter(id -> id != '', [
            asset_id,
            transform(asset_id, links.1, links.2, '') AS second,
            transform(second, links.1, links.2, '') AS third,
            transform(third, links.1, links.2, '') AS fourth,
            transform(fourth, links.1, links.2, '')])) AS line
    FROM all_assets
)
ARRAY JOIN arrayEnumerate(line) AS number
COMMENT 'Every asset, and what receipt tokens redeem in the end, step by step';

CREATE OR REPLACE VIEW price_at{on_cluster}
AS WITH
{functions},
{instant},
(
    SELECT max((at, version))
    FROM snapshot
    WHERE family = 'markets' AND kind IN ('job', 'backfill') AND at <= instant
) AS markets,
-- Later observations are of runs that have not ended, and cells after this one are not closed.
(
    SELECT toDateTime(least(instant, max(last_observed_at)), 'UTC')
    FROM snapshot
    WHERE family = 'prices' AND kind != 'assets'
    HAVING NOT throwIf(min(first_observed_at) > instant, 'This time is before the first price')
) AS moment,
-- The snapshot that says how old a price is. Nothing says so of imported history alone.
(SELECT maxOrNull(at) FROM snapshot WHERE family = 'prices' AND kind IN ('job', 'backfill') AND at <= instant) AS taken,
-- That snapshot says what has ended, too.
ended AS (SELECT asset_id FROM all_assets WHERE ended_at < ifNull(taken, instant)),
quoted AS
(
    SELECT
        asset_id,
        max(last_at) AS observed_at,
        if(dateDiff('second', observed_at, taken) > {price_max_age}, NULL, toFloat64(argMax(value, last_at))) AS price
    FROM
    (
        SELECT asset_id, last_at, close AS value
        FROM cell FINAL
        WHERE history = 'price'
          AND (width = 'month' AND cell < toStartOfMonth(moment)
            OR width = 'day' AND cell >= toStartOfMonth(moment) AND cell < toStartOfDay(moment)
            OR width = 'quarter' AND cell >= toStartOfDay(moment) AND cell < toStartOfFifteenMinutes(moment))

        UNION ALL

        SELECT asset_id, observed_at, value
        FROM observation FINAL
        WHERE history = 'price' AND observed_at >= toStartOfFifteenMinutes(moment) AND observed_at <= moment
    )
    WHERE asset_id NOT IN (SELECT asset_id FROM ended)
    GROUP BY asset_id
),
redeemed AS
(
    SELECT l.asset_id AS asset_id,
        redeemed_by_each(l.principal, l.receipt_supply, a.receipt_decimals - a.decimals) AS ratio
    FROM (SELECT * FROM market_lend FINAL WHERE observed_at = markets.1 AND version = markets.2) AS l
    INNER JOIN all_assets AS a ON a.asset_id = l.asset_id
    WHERE a.receipt_id NOT IN (SELECT asset_id FROM ended)
),
-- The quotes on the line of each asset, and what each asset on it redeems of the next.
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
        -- The first on the line with a quote, or else the first that has lost it.
        coalesce(
            nullIf(arrayFirstIndex(quote -> isFinite(quote), quotes), 0),
            arrayFirstIndex(quote -> isInfinite(quote), quotes)) AS base
    FROM asset_line AS a
    LEFT JOIN quoted AS q ON q.asset_id = a.origin_id
    LEFT JOIN redeemed AS r ON r.asset_id = a.origin_id
    WHERE a.asset_id NOT IN (SELECT asset_id FROM ended)
    GROUP BY asset_id
    HAVING NOT isNaN(price)
)
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
SETTINGS join_use_nulls = 0
COMMENT 'The price of each asset as of an instant, with the columns of price_now: FROM price_at(time = \'2026-03-01T12:00:00Z\')';

CREATE OR REPLACE VIEW price_now{on_cluster}
(
    asset_id String COMMENT 'Asset id',
    symbol String COMMENT 'Symbol of the asset',
    price Nullable(Float64) COMMENT 'USD per standard unit: the oracle''s last price, or that of a receipt token which it does not quote; null if the asset lost its price, because that is too old',
    observed_at DateTime64(3, 'UTC') COMMENT 'Instant of that price; that of its origin if it follows from one',
    follows Bool COMMENT 'Whether the price follows from that of the origin of a receipt token',
    priced_by String COMMENT 'Id of the asset whose price it is or follows, which is what a receipt token of a receipt token redeems in the end',
    {snapshot_columns}
)
AS SELECT *
FROM price_at(time = toUnixTimestamp(now() + INTERVAL 60 SECOND))
COMMENT 'The present price of each asset that has or had one; price_at has the same columns';
