-- Assets and their prices.

CREATE OR REPLACE VIEW all_assets{on_cluster}
(
    asset_id String COMMENT 'Asset id, <group>;<group_key>',
    symbol String COMMENT 'Symbol of a standard unit',
    name String COMMENT 'Full name',
    kind String COMMENT 'Classification: regular, protocol_receipt_token or liquid_staking_token',
    decimals UInt8 COMMENT 'Decimal places between denom and standard units: 10^this denom make one standard unit',
    decimals_known Bool COMMENT 'Whether the decimals are known. If not, they are 0',
    origin_id String COMMENT 'Id of the asset that a receipt or liquid-staking token represents. Empty for other assets',
    receipt_id String COMMENT 'Id of the receipt token of the asset. Empty if it has none',
    receipt_decimals UInt8 COMMENT 'Decimal places of the receipt token, or of the asset if the token is not defined',
    ended_at Nullable(DateTime64(3, 'UTC')) COMMENT 'Last instant at which the asset has values. Null while it has not ended'
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
        -- An asset that is not listed now was listed until the latest instant that any commit saw.
        maxIf(listed_until, listed_until < toDateTime(4294967295)) AS last_listed
    FROM asset_definition
    GROUP BY id
),
-- Receipt tokens by origin, and decimals by asset. A query executes these scalars once, however often it reads this view.
(
    SELECT (groupArray(origin), groupArray(receipt))
    FROM
    (
        SELECT a.5 AS origin, min(id) AS receipt
        FROM defined
        WHERE a.3 = 'protocol_receipt_token' AND a.5 != ''
        GROUP BY origin
    )
) AS receipts,
(SELECT (groupArray(id), groupArray(a.4)) FROM defined WHERE a.8) AS described
SELECT
    id AS asset_id,
    a.1 AS symbol,
    a.2 AS name,
    a.3 AS kind,
    a.4 AS decimals,
    toBool(a.8) AS decimals_known,
    a.5 AS origin_id,
    if(a.6 != '', a.6, transform(id, receipts.1, receipts.2, '')) AS receipt_id,
    transform(receipt_id, described.1, described.2, a.4) AS receipt_decimals,
    CAST(if(a.7 = a.9, last_listed, a.7), 'Nullable(DateTime64(3, \'UTC\'))') AS ended_at
FROM defined
COMMENT 'Every asset, ended ones included, as it is defined now';

CREATE OR REPLACE VIEW assets{on_cluster}
(
    asset_id String COMMENT 'Asset id, <group>;<group_key>',
    symbol String COMMENT 'Symbol of a standard unit',
    name String COMMENT 'Full name',
    kind String COMMENT 'Classification: regular, protocol_receipt_token or liquid_staking_token',
    decimals UInt8 COMMENT 'Decimal places between denom and standard units: 10^this denom make one standard unit',
    decimals_known Bool COMMENT 'Whether the decimals are known. If not, they are 0',
    origin_id String COMMENT 'Id of the asset that a receipt or liquid-staking token represents. Empty for other assets',
    receipt_id String COMMENT 'Id of the receipt token of the asset. Empty if it has none'
)
AS SELECT * EXCEPT (receipt_decimals, ended_at)
FROM all_assets
WHERE ended_at IS NULL
COMMENT 'Every asset that has not ended, as it is defined now';

CREATE OR REPLACE VIEW asset_line{on_cluster}
(
    asset_id String COMMENT 'Asset id',
    symbol String COMMENT 'Symbol of the asset',
    step UInt8 COMMENT '1 for the asset itself, 2 for the asset that it redeems if it is a receipt token, and so on up to 5',
    origin_id String COMMENT 'Id of the asset at that step'
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
COMMENT 'Every asset and, step by step, the assets that receipt tokens redeem';

CREATE OR REPLACE VIEW price_at{on_cluster}
AS WITH
{functions},
{instant},
(
    SELECT max((at, version))
    FROM snapshot
    WHERE dataset = 'markets' AND kind IN ('job', 'backfill') AND at <= instant
) AS markets,
{prices}
SELECT *
FROM prices
COMMENT 'The price of each asset as of an instant, with the columns of price_now: FROM price_at(time = \'2026-03-01T12:00:00Z\')';

CREATE OR REPLACE VIEW price_now{on_cluster}
(
    asset_id String COMMENT 'Asset id',
    symbol String COMMENT 'Symbol of the asset',
    price Nullable(Float64) COMMENT 'USD per standard unit: the last oracle price, or the price that follows for a receipt token without one. Null if the price is too old',
    observed_at DateTime64(3, 'UTC') COMMENT 'Instant of the oracle price',
    follows Bool COMMENT 'Whether the price follows from the price of another asset, which the receipt token redeems',
    priced_by String COMMENT 'Id of the asset with the oracle price: the asset itself, or the last asset of a receipt token\'s redemption chain',
    {snapshot_columns}
)
AS SELECT *
FROM price_at(time = toUnixTimestamp(now() + INTERVAL 60 SECOND))
COMMENT 'The present price of each asset that has or had one; price_at has the same columns';
