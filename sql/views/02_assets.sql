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
    ended_at Nullable(DateTime64(3, 'UTC')) COMMENT 'Instant after which the asset has no values any more; null while it goes on'
)
AS WITH defined AS
(
    SELECT
        id,
        argMax(
            (symbol, name, kind, decimals_denom, ifNull(origin_asset, ''), ifNull(receipt_asset, ''), ended_at), version) AS a
    FROM asset
    GROUP BY id
)
SELECT
    d.id AS asset_id,
    d.a.1 AS symbol,
    d.a.2 AS name,
    d.a.3 AS kind,
    d.a.4 AS decimals,
    d.a.5 AS origin_id,
    if(d.a.6 != '', d.a.6, r.receipt) AS receipt_id,
    CAST(d.a.7, 'Nullable(DateTime64(3, \'UTC\'))') AS ended_at
FROM defined AS d
LEFT JOIN
(
    SELECT a.5 AS origin, min(id) AS receipt
    FROM defined
    WHERE a.3 = 'protocol_receipt_token' AND a.5 != ''
    GROUP BY origin
) AS r ON r.origin = d.id
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
AS SELECT * EXCEPT ended_at
FROM all_assets
WHERE ended_at IS NULL
COMMENT 'Every asset that has not ended, as it is defined now';

CREATE OR REPLACE VIEW price_at{on_cluster}
AS WITH
{functions},
-- Snapshots from the future are passed over until their time has come (rule 8.16).
least(parseDateTime64BestEffort({time:String}, 3, 'UTC'), now64(3, 'UTC') + INTERVAL 60 SECOND) AS instant,
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
(SELECT max(at) FROM snapshot WHERE family = 'prices' AND kind IN ('job', 'backfill') AND at <= instant) AS taken,
ended AS (SELECT asset_id FROM all_assets WHERE ended_at < instant),
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
)
SELECT
    toString(p.asset_id) AS asset_id,
    toString(a.symbol) AS symbol,
    p.price AS price,
    toDateTime64(p.observed_at, 3, 'UTC') AS observed_at,
    toBool(p.follows) AS follows
FROM
(
    SELECT asset_id, price, observed_at, follows
    FROM
    (
        SELECT asset_id, price, observed_at, 0 AS follows
        FROM quoted

        UNION ALL

        SELECT o.receipt_id, l.redemption * q.price, q.observed_at, 1
        FROM quoted AS q
        INNER JOIN all_assets AS o ON o.asset_id = q.asset_id
        INNER JOIN
        (
            SELECT asset_id, redeemed_by_each(principal, receipt_supply) AS redemption
            FROM market_lend FINAL
            WHERE observed_at = markets.1 AND version = markets.2
        ) AS l ON l.asset_id = q.asset_id
        WHERE o.receipt_id != ''
    )
    ORDER BY price IS NULL, follows
    LIMIT 1 BY asset_id
) AS p
LEFT JOIN all_assets AS a ON a.asset_id = p.asset_id
WHERE p.asset_id NOT IN (SELECT asset_id FROM ended)
SETTINGS join_use_nulls = 0
COMMENT 'The price of each asset as of an instant: FROM price_at(time = \'2026-03-01 12:00:00\')';

CREATE OR REPLACE VIEW price_now{on_cluster}
(
    asset_id String COMMENT 'Asset id',
    symbol String COMMENT 'Symbol of the asset',
    price Nullable(Float64) COMMENT 'USD per standard unit: the oracle''s last price, or that of a receipt token which it does not quote; null if the asset lost its price, because that is too old',
    observed_at DateTime64(3, 'UTC') COMMENT 'Instant of that price; that of its origin if it follows from one',
    follows Bool COMMENT 'Whether the price follows from that of the origin of a receipt token'
)
AS SELECT asset_id, symbol, price, observed_at, follows
FROM price_at(time = '2106-01-01')
COMMENT 'The present price of each asset that has or had one; price_at has the same columns';
