-- Assets, their price observations, and the rollup that wide buckets and look-backs read.

CREATE TABLE IF NOT EXISTS asset
(
    id String COMMENT 'Asset id, <group>;<group_key>',
    version UInt64 COMMENT 'Unix milliseconds of the run that wrote this definition; the greatest one holds',
    name String COMMENT 'Full name',
    symbol LowCardinality(String) COMMENT 'Symbol of a standard unit',
    symbol_denom String COMMENT 'Symbol of a denom unit',
    decimals_denom UInt8 COMMENT 'Decimal places between denom and standard units: 10^this denom make one standard unit',
    decimals_display UInt8 COMMENT 'Decimal places shown in texts',
    kind LowCardinality(String) COMMENT 'Classification: regular, protocol_receipt_token or liquid_staking_token',
    origin_asset Nullable(String) COMMENT 'Asset id that a receipt or liquid-staking token stands for',
    receipt_asset Nullable(String) COMMENT 'Asset id of the receipt token of a regular asset'
)
ENGINE = ReplacingMergeTree
ORDER BY (id, version)
COMMENT 'Definitions of assets, one row each time a definition changed';

CREATE TABLE IF NOT EXISTS price
(
    asset_id LowCardinality(String) COMMENT 'Asset id',
    observed_at DateTime('UTC') CODEC(DoubleDelta, ZSTD(1)) COMMENT 'Instant of the observation, whole seconds',
    price Decimal(38, 18) CODEC(ZSTD(1)) COMMENT 'USD per standard unit of the asset',
    version UInt64 CODEC(DoubleDelta, ZSTD(1)) COMMENT 'Unix milliseconds of the run that wrote it; of several rows for one asset and instant the greatest version holds'
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYYYYMM(observed_at)
ORDER BY (asset_id, observed_at)
COMMENT 'Every price observation; query with FINAL, or argMax(price, version), to see corrections applied';

CREATE TABLE IF NOT EXISTS price_rollup
(
    width Enum8('quarter' = 1, 'day' = 2, 'month' = 3) COMMENT 'Width of the cell: 15 minutes, a UTC day, or a UTC month',
    asset_id LowCardinality(String) COMMENT 'Asset id',
    cell DateTime('UTC') CODEC(Delta, ZSTD(1)) COMMENT 'Instant at which the cell begins',
    price Decimal(38, 18) CODEC(ZSTD(1)) COMMENT 'USD per standard unit at the last observation in the cell',
    rank UInt64 CODEC(T64, LZ4) COMMENT '(observed_at - cell) * 2^42 + version of that observation; of several rows for one cell the greatest rank holds',
    observed_at DateTime('UTC') ALIAS cell + bitShiftRight(rank, 42) COMMENT 'Instant of the last observation in the cell'
)
ENGINE = ReplacingMergeTree(rank)
PARTITION BY (width, if(width = 'quarter', toYYYYMM(cell), 0))
ORDER BY (width, asset_id, cell)
COMMENT 'Last price in each cell of 15 minutes, one day and one month; query with FINAL or argMax(price, rank)';

-- Replacing by rank is idempotent: a replayed insert changes nothing.
CREATE MATERIALIZED VIEW IF NOT EXISTS price_rollup_view TO price_rollup
AS SELECT
    CAST(cell_width, 'Enum8(\'quarter\' = 1, \'day\' = 2, \'month\' = 3)') AS width,
    asset_id,
    multiIf(
        cell_width = 'quarter', toStartOfFifteenMinutes(observed_at),
        cell_width = 'day', toStartOfDay(observed_at),
        toDateTime(toStartOfMonth(observed_at), 'UTC')) AS cell,
    price,
    bitShiftLeft(toUInt64(observed_at - cell), 42) + version AS rank
FROM price
ARRAY JOIN ['quarter', 'day', 'month'] AS cell_width
COMMENT 'Feeds price_rollup from each insert into price';
