-- USD prices and values with each snapshot of markets: the source's prices at that instant, and the histories that follow
-- from them (ledger family markets). A history each, so that an asset without one of the markets has no such history.

CREATE TABLE IF NOT EXISTS market_price
(
    asset_id LowCardinality(String) COMMENT 'Asset id',
    observed_at DateTime('UTC') CODEC(Delta, T64, ZSTD(1)) COMMENT 'Instant of the snapshot',
    price Decimal(38, 18) CODEC(GCD, ZSTD(1)) COMMENT 'USD per standard unit, as the oracle stated it last by then',
    version UInt64 CODEC(Delta, T64, ZSTD(1)) COMMENT 'Unix milliseconds of the run that wrote the row; of several rows for one asset and snapshot, the greatest version wins'
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYYYYMM(observed_at)
ORDER BY (asset_id, observed_at)
SETTINGS index_granularity = 1024
COMMENT 'Oracle prices of assets with a market at each snapshot of markets; those of receipt tokens that the oracle does not quote follow from them';

CREATE TABLE IF NOT EXISTS tvl
(
    asset_id LowCardinality(String) COMMENT 'Always the empty string, which stands for all assets',
    observed_at DateTime('UTC') CODEC(Delta, T64, ZSTD(1)) COMMENT 'Instant of the snapshot of markets',
    usd Decimal(38, 18) CODEC(GCD, ZSTD(1)) COMMENT 'USD value of all deposits, and of all collateral that is no receipt token',
    version UInt64 CODEC(Delta, T64, ZSTD(1)) COMMENT 'Unix milliseconds of the run that wrote the row; of several rows for one asset and instant, the greatest version wins'
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYYYYMM(observed_at)
ORDER BY (asset_id, observed_at)
COMMENT 'Total value locked at each snapshot of markets; query with FINAL, or argMax(usd, version), to see corrections applied';

CREATE TABLE IF NOT EXISTS tvl_rollup
(
    width Enum8('quarter' = 1, 'day' = 2, 'month' = 3) COMMENT 'Width of the cell: 15 minutes, a UTC day, or a UTC month',
    asset_id LowCardinality(String) COMMENT 'Always the empty string, which stands for all assets',
    cell DateTime('UTC') CODEC(Delta, ZSTD(1)) COMMENT 'Instant at which the cell begins',
    usd Decimal(38, 18) CODEC(GCD, ZSTD(1)) COMMENT 'USD value of all deposits, and of all collateral that is no receipt token, at the last observation in the cell',
    rank UInt64 CODEC(T64, LZ4) COMMENT '(observed_at - cell) * 2^42 + version of that observation; of several rows for one cell, the greatest rank wins',
    observed_at DateTime('UTC') ALIAS cell + bitShiftRight(rank, 42) COMMENT 'Instant of the last observation in the cell'
)
ENGINE = ReplacingMergeTree(rank)
PARTITION BY (width, if(width = 'quarter', toYYYYMM(cell), 0))
ORDER BY (width, asset_id, cell)
COMMENT 'Last total value locked in each cell of 15 minutes, one day and one month; query with FINAL or argMax(usd, rank)';

CREATE MATERIALIZED VIEW IF NOT EXISTS tvl_rollup_view TO tvl_rollup
AS SELECT
    CAST(cell_width, 'Enum8(\'quarter\' = 1, \'day\' = 2, \'month\' = 3)') AS width,
    asset_id,
    multiIf(
        cell_width = 'quarter', toStartOfFifteenMinutes(observed_at),
        cell_width = 'day', toStartOfDay(observed_at),
        toDateTime(toStartOfMonth(observed_at), 'UTC')) AS cell,
    usd,
    bitShiftLeft(toUInt64(observed_at - cell), 42) + version AS rank
FROM tvl
ARRAY JOIN ['quarter', 'day', 'month'] AS cell_width
COMMENT 'Feeds tvl_rollup from each insert into tvl';

CREATE TABLE IF NOT EXISTS net_tvl
(
    asset_id LowCardinality(String) COMMENT 'Always the empty string, which stands for all assets',
    observed_at DateTime('UTC') CODEC(Delta, T64, ZSTD(1)) COMMENT 'Instant of the snapshot of markets',
    usd Decimal(38, 18) CODEC(GCD, ZSTD(1)) COMMENT 'USD value of all deposits, and of all collateral that is no receipt token, less that of all debt',
    version UInt64 CODEC(Delta, T64, ZSTD(1)) COMMENT 'Unix milliseconds of the run that wrote the row; of several rows for one asset and instant, the greatest version wins'
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYYYYMM(observed_at)
ORDER BY (asset_id, observed_at)
COMMENT 'Total value locked, net of debt, at each snapshot of markets; query with FINAL, or argMax(usd, version), to see corrections applied';

CREATE TABLE IF NOT EXISTS net_tvl_rollup
(
    width Enum8('quarter' = 1, 'day' = 2, 'month' = 3) COMMENT 'Width of the cell: 15 minutes, a UTC day, or a UTC month',
    asset_id LowCardinality(String) COMMENT 'Always the empty string, which stands for all assets',
    cell DateTime('UTC') CODEC(Delta, ZSTD(1)) COMMENT 'Instant at which the cell begins',
    usd Decimal(38, 18) CODEC(GCD, ZSTD(1)) COMMENT 'USD value of all deposits, and of all collateral that is no receipt token, less that of all debt, at the last observation in the cell',
    rank UInt64 CODEC(T64, LZ4) COMMENT '(observed_at - cell) * 2^42 + version of that observation; of several rows for one cell, the greatest rank wins',
    observed_at DateTime('UTC') ALIAS cell + bitShiftRight(rank, 42) COMMENT 'Instant of the last observation in the cell'
)
ENGINE = ReplacingMergeTree(rank)
PARTITION BY (width, if(width = 'quarter', toYYYYMM(cell), 0))
ORDER BY (width, asset_id, cell)
COMMENT 'Last net total value locked in each cell of 15 minutes, one day and one month; query with FINAL or argMax(usd, rank)';

CREATE MATERIALIZED VIEW IF NOT EXISTS net_tvl_rollup_view TO net_tvl_rollup
AS SELECT
    CAST(cell_width, 'Enum8(\'quarter\' = 1, \'day\' = 2, \'month\' = 3)') AS width,
    asset_id,
    multiIf(
        cell_width = 'quarter', toStartOfFifteenMinutes(observed_at),
        cell_width = 'day', toStartOfDay(observed_at),
        toDateTime(toStartOfMonth(observed_at), 'UTC')) AS cell,
    usd,
    bitShiftLeft(toUInt64(observed_at - cell), 42) + version AS rank
FROM net_tvl
ARRAY JOIN ['quarter', 'day', 'month'] AS cell_width
COMMENT 'Feeds net_tvl_rollup from each insert into net_tvl';

CREATE TABLE IF NOT EXISTS deposit_value
(
    asset_id LowCardinality(String) COMMENT 'Asset id',
    observed_at DateTime('UTC') CODEC(Delta, T64, ZSTD(1)) COMMENT 'Instant of the snapshot of markets',
    usd Decimal(38, 18) CODEC(GCD, ZSTD(1)) COMMENT 'USD value of the principal owed to lenders of the asset',
    version UInt64 CODEC(Delta, T64, ZSTD(1)) COMMENT 'Unix milliseconds of the run that wrote the row; of several rows for one asset and instant, the greatest version wins'
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYYYYMM(observed_at)
ORDER BY (asset_id, observed_at)
COMMENT 'Value of deposits for lending at each snapshot of markets; query with FINAL, or argMax(usd, version), to see corrections applied';

CREATE TABLE IF NOT EXISTS deposit_value_rollup
(
    width Enum8('quarter' = 1, 'day' = 2, 'month' = 3) COMMENT 'Width of the cell: 15 minutes, a UTC day, or a UTC month',
    asset_id LowCardinality(String) COMMENT 'Asset id',
    cell DateTime('UTC') CODEC(Delta, ZSTD(1)) COMMENT 'Instant at which the cell begins',
    usd Decimal(38, 18) CODEC(GCD, ZSTD(1)) COMMENT 'USD value of the principal owed to lenders of the asset, at the last observation in the cell',
    rank UInt64 CODEC(T64, LZ4) COMMENT '(observed_at - cell) * 2^42 + version of that observation; of several rows for one cell, the greatest rank wins',
    observed_at DateTime('UTC') ALIAS cell + bitShiftRight(rank, 42) COMMENT 'Instant of the last observation in the cell'
)
ENGINE = ReplacingMergeTree(rank)
PARTITION BY (width, if(width = 'quarter', toYYYYMM(cell), 0))
ORDER BY (width, asset_id, cell)
COMMENT 'Last value of deposits in each cell of 15 minutes, one day and one month; query with FINAL or argMax(usd, rank)';

CREATE MATERIALIZED VIEW IF NOT EXISTS deposit_value_rollup_view TO deposit_value_rollup
AS SELECT
    CAST(cell_width, 'Enum8(\'quarter\' = 1, \'day\' = 2, \'month\' = 3)') AS width,
    asset_id,
    multiIf(
        cell_width = 'quarter', toStartOfFifteenMinutes(observed_at),
        cell_width = 'day', toStartOfDay(observed_at),
        toDateTime(toStartOfMonth(observed_at), 'UTC')) AS cell,
    usd,
    bitShiftLeft(toUInt64(observed_at - cell), 42) + version AS rank
FROM deposit_value
ARRAY JOIN ['quarter', 'day', 'month'] AS cell_width
COMMENT 'Feeds deposit_value_rollup from each insert into deposit_value';

CREATE TABLE IF NOT EXISTS collateral_value
(
    asset_id LowCardinality(String) COMMENT 'Asset id',
    observed_at DateTime('UTC') CODEC(Delta, T64, ZSTD(1)) COMMENT 'Instant of the snapshot of markets',
    usd Decimal(38, 18) CODEC(GCD, ZSTD(1)) COMMENT 'USD value of the collateral posted in the asset',
    version UInt64 CODEC(Delta, T64, ZSTD(1)) COMMENT 'Unix milliseconds of the run that wrote the row; of several rows for one asset and instant, the greatest version wins'
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYYYYMM(observed_at)
ORDER BY (asset_id, observed_at)
COMMENT 'Value of collateral at each snapshot of markets; query with FINAL, or argMax(usd, version), to see corrections applied';

CREATE TABLE IF NOT EXISTS collateral_value_rollup
(
    width Enum8('quarter' = 1, 'day' = 2, 'month' = 3) COMMENT 'Width of the cell: 15 minutes, a UTC day, or a UTC month',
    asset_id LowCardinality(String) COMMENT 'Asset id',
    cell DateTime('UTC') CODEC(Delta, ZSTD(1)) COMMENT 'Instant at which the cell begins',
    usd Decimal(38, 18) CODEC(GCD, ZSTD(1)) COMMENT 'USD value of the collateral posted in the asset, at the last observation in the cell',
    rank UInt64 CODEC(T64, LZ4) COMMENT '(observed_at - cell) * 2^42 + version of that observation; of several rows for one cell, the greatest rank wins',
    observed_at DateTime('UTC') ALIAS cell + bitShiftRight(rank, 42) COMMENT 'Instant of the last observation in the cell'
)
ENGINE = ReplacingMergeTree(rank)
PARTITION BY (width, if(width = 'quarter', toYYYYMM(cell), 0))
ORDER BY (width, asset_id, cell)
COMMENT 'Last value of collateral in each cell of 15 minutes, one day and one month; query with FINAL or argMax(usd, rank)';

CREATE MATERIALIZED VIEW IF NOT EXISTS collateral_value_rollup_view TO collateral_value_rollup
AS SELECT
    CAST(cell_width, 'Enum8(\'quarter\' = 1, \'day\' = 2, \'month\' = 3)') AS width,
    asset_id,
    multiIf(
        cell_width = 'quarter', toStartOfFifteenMinutes(observed_at),
        cell_width = 'day', toStartOfDay(observed_at),
        toDateTime(toStartOfMonth(observed_at), 'UTC')) AS cell,
    usd,
    bitShiftLeft(toUInt64(observed_at - cell), 42) + version AS rank
FROM collateral_value
ARRAY JOIN ['quarter', 'day', 'month'] AS cell_width
COMMENT 'Feeds collateral_value_rollup from each insert into collateral_value';

CREATE TABLE IF NOT EXISTS debt_value
(
    asset_id LowCardinality(String) COMMENT 'Asset id',
    observed_at DateTime('UTC') CODEC(Delta, T64, ZSTD(1)) COMMENT 'Instant of the snapshot of markets',
    usd Decimal(38, 18) CODEC(GCD, ZSTD(1)) COMMENT 'USD value of the debt in the asset, with interest',
    version UInt64 CODEC(Delta, T64, ZSTD(1)) COMMENT 'Unix milliseconds of the run that wrote the row; of several rows for one asset and instant, the greatest version wins'
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYYYYMM(observed_at)
ORDER BY (asset_id, observed_at)
COMMENT 'Value of debt at each snapshot of markets; query with FINAL, or argMax(usd, version), to see corrections applied';

CREATE TABLE IF NOT EXISTS debt_value_rollup
(
    width Enum8('quarter' = 1, 'day' = 2, 'month' = 3) COMMENT 'Width of the cell: 15 minutes, a UTC day, or a UTC month',
    asset_id LowCardinality(String) COMMENT 'Asset id',
    cell DateTime('UTC') CODEC(Delta, ZSTD(1)) COMMENT 'Instant at which the cell begins',
    usd Decimal(38, 18) CODEC(GCD, ZSTD(1)) COMMENT 'USD value of the debt in the asset, with interest, at the last observation in the cell',
    rank UInt64 CODEC(T64, LZ4) COMMENT '(observed_at - cell) * 2^42 + version of that observation; of several rows for one cell, the greatest rank wins',
    observed_at DateTime('UTC') ALIAS cell + bitShiftRight(rank, 42) COMMENT 'Instant of the last observation in the cell'
)
ENGINE = ReplacingMergeTree(rank)
PARTITION BY (width, if(width = 'quarter', toYYYYMM(cell), 0))
ORDER BY (width, asset_id, cell)
COMMENT 'Last value of debt in each cell of 15 minutes, one day and one month; query with FINAL or argMax(usd, rank)';

CREATE MATERIALIZED VIEW IF NOT EXISTS debt_value_rollup_view TO debt_value_rollup
AS SELECT
    CAST(cell_width, 'Enum8(\'quarter\' = 1, \'day\' = 2, \'month\' = 3)') AS width,
    asset_id,
    multiIf(
        cell_width = 'quarter', toStartOfFifteenMinutes(observed_at),
        cell_width = 'day', toStartOfDay(observed_at),
        toDateTime(toStartOfMonth(observed_at), 'UTC')) AS cell,
    usd,
    bitShiftLeft(toUInt64(observed_at - cell), 42) + version AS rank
FROM debt_value
ARRAY JOIN ['quarter', 'day', 'month'] AS cell_width
COMMENT 'Feeds debt_value_rollup from each insert into debt_value';

CREATE TABLE IF NOT EXISTS utilization
(
    asset_id LowCardinality(String) COMMENT 'Asset id',
    observed_at DateTime('UTC') CODEC(Delta, T64, ZSTD(1)) COMMENT 'Instant of the snapshot of markets',
    ratio Decimal(38, 18) CODEC(GCD, ZSTD(1)) COMMENT 'Debt in the asset divided by the principal owed to its lenders, as a fraction: 0.5 means 50 %',
    version UInt64 CODEC(Delta, T64, ZSTD(1)) COMMENT 'Unix milliseconds of the run that wrote the row; of several rows for one asset and instant, the greatest version wins'
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYYYYMM(observed_at)
ORDER BY (asset_id, observed_at)
COMMENT 'Utilization of deposits at each snapshot of markets; query with FINAL, or argMax(ratio, version), to see corrections applied';

CREATE TABLE IF NOT EXISTS utilization_rollup
(
    width Enum8('quarter' = 1, 'day' = 2, 'month' = 3) COMMENT 'Width of the cell: 15 minutes, a UTC day, or a UTC month',
    asset_id LowCardinality(String) COMMENT 'Asset id',
    cell DateTime('UTC') CODEC(Delta, ZSTD(1)) COMMENT 'Instant at which the cell begins',
    ratio Decimal(38, 18) CODEC(GCD, ZSTD(1)) COMMENT 'Debt in the asset divided by the principal owed to its lenders, as a fraction: 0.5 means 50 %, at the last observation in the cell',
    rank UInt64 CODEC(T64, LZ4) COMMENT '(observed_at - cell) * 2^42 + version of that observation; of several rows for one cell, the greatest rank wins',
    observed_at DateTime('UTC') ALIAS cell + bitShiftRight(rank, 42) COMMENT 'Instant of the last observation in the cell'
)
ENGINE = ReplacingMergeTree(rank)
PARTITION BY (width, if(width = 'quarter', toYYYYMM(cell), 0))
ORDER BY (width, asset_id, cell)
COMMENT 'Last utilization of deposits in each cell of 15 minutes, one day and one month; query with FINAL or argMax(ratio, rank)';

CREATE MATERIALIZED VIEW IF NOT EXISTS utilization_rollup_view TO utilization_rollup
AS SELECT
    CAST(cell_width, 'Enum8(\'quarter\' = 1, \'day\' = 2, \'month\' = 3)') AS width,
    asset_id,
    multiIf(
        cell_width = 'quarter', toStartOfFifteenMinutes(observed_at),
        cell_width = 'day', toStartOfDay(observed_at),
        toDateTime(toStartOfMonth(observed_at), 'UTC')) AS cell,
    ratio,
    bitShiftLeft(toUInt64(observed_at - cell), 42) + version AS rank
FROM utilization
ARRAY JOIN ['quarter', 'day', 'month'] AS cell_width
COMMENT 'Feeds utilization_rollup from each insert into utilization';
