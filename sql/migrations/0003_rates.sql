-- Lend and borrow rates. Two tables, so that an asset without one of the markets has no such history.

CREATE TABLE IF NOT EXISTS lend_rate
(
    asset_id LowCardinality(String) COMMENT 'Asset id',
    observed_at DateTime('UTC') CODEC(DoubleDelta, ZSTD(1)) COMMENT 'Instant of the observation, whole seconds',
    apr Decimal(38, 18) CODEC(ZSTD(1)) COMMENT 'Yearly rate that lenders of the asset earn, without compounding, as a fraction: 0.05 is 5 %',
    version UInt64 CODEC(DoubleDelta, ZSTD(1)) COMMENT 'Unix milliseconds of the run that wrote it; of several rows for one asset and instant the greatest version holds'
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYYYYMM(observed_at)
ORDER BY (asset_id, observed_at)
COMMENT 'Every observation of the lend rates; query with FINAL, or argMax(apr, version), to see corrections applied';

CREATE TABLE IF NOT EXISTS lend_rate_rollup
(
    width Enum8('quarter' = 1, 'day' = 2, 'month' = 3) COMMENT 'Width of the cell: 15 minutes, a UTC day, or a UTC month',
    asset_id LowCardinality(String) COMMENT 'Asset id',
    cell DateTime('UTC') CODEC(Delta, ZSTD(1)) COMMENT 'Instant at which the cell begins',
    apr Decimal(38, 18) CODEC(ZSTD(1)) COMMENT 'Yearly rate that lenders of the asset earn, as a fraction, at the last observation in the cell',
    rank UInt64 CODEC(T64, LZ4) COMMENT '(observed_at - cell) * 2^42 + version of that observation; of several rows for one cell the greatest rank holds',
    observed_at DateTime('UTC') ALIAS cell + bitShiftRight(rank, 42) COMMENT 'Instant of the last observation in the cell'
)
ENGINE = ReplacingMergeTree(rank)
PARTITION BY (width, if(width = 'quarter', toYYYYMM(cell), 0))
ORDER BY (width, asset_id, cell)
COMMENT 'Last lend rate in each cell of 15 minutes, one day and one month; query with FINAL or argMax(apr, rank)';

CREATE MATERIALIZED VIEW IF NOT EXISTS lend_rate_rollup_view TO lend_rate_rollup
AS SELECT
    CAST(cell_width, 'Enum8(\'quarter\' = 1, \'day\' = 2, \'month\' = 3)') AS width,
    asset_id,
    multiIf(
        cell_width = 'quarter', toStartOfFifteenMinutes(observed_at),
        cell_width = 'day', toStartOfDay(observed_at),
        toDateTime(toStartOfMonth(observed_at), 'UTC')) AS cell,
    apr,
    bitShiftLeft(toUInt64(observed_at - cell), 42) + version AS rank
FROM lend_rate
ARRAY JOIN ['quarter', 'day', 'month'] AS cell_width
COMMENT 'Feeds lend_rate_rollup from each insert into lend_rate';

CREATE TABLE IF NOT EXISTS borrow_rate
(
    asset_id LowCardinality(String) COMMENT 'Asset id',
    observed_at DateTime('UTC') CODEC(DoubleDelta, ZSTD(1)) COMMENT 'Instant of the observation, whole seconds',
    apr Decimal(38, 18) CODEC(ZSTD(1)) COMMENT 'Yearly rate that borrowers of the asset owe, without compounding, as a fraction: 0.05 is 5 %',
    version UInt64 CODEC(DoubleDelta, ZSTD(1)) COMMENT 'Unix milliseconds of the run that wrote it; of several rows for one asset and instant the greatest version holds'
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYYYYMM(observed_at)
ORDER BY (asset_id, observed_at)
COMMENT 'Every observation of the borrow rates; query with FINAL, or argMax(apr, version), to see corrections applied';

CREATE TABLE IF NOT EXISTS borrow_rate_rollup
(
    width Enum8('quarter' = 1, 'day' = 2, 'month' = 3) COMMENT 'Width of the cell: 15 minutes, a UTC day, or a UTC month',
    asset_id LowCardinality(String) COMMENT 'Asset id',
    cell DateTime('UTC') CODEC(Delta, ZSTD(1)) COMMENT 'Instant at which the cell begins',
    apr Decimal(38, 18) CODEC(ZSTD(1)) COMMENT 'Yearly rate that borrowers of the asset owe, as a fraction, at the last observation in the cell',
    rank UInt64 CODEC(T64, LZ4) COMMENT '(observed_at - cell) * 2^42 + version of that observation; of several rows for one cell the greatest rank holds',
    observed_at DateTime('UTC') ALIAS cell + bitShiftRight(rank, 42) COMMENT 'Instant of the last observation in the cell'
)
ENGINE = ReplacingMergeTree(rank)
PARTITION BY (width, if(width = 'quarter', toYYYYMM(cell), 0))
ORDER BY (width, asset_id, cell)
COMMENT 'Last borrow rate in each cell of 15 minutes, one day and one month; query with FINAL or argMax(apr, rank)';

CREATE MATERIALIZED VIEW IF NOT EXISTS borrow_rate_rollup_view TO borrow_rate_rollup
AS SELECT
    CAST(cell_width, 'Enum8(\'quarter\' = 1, \'day\' = 2, \'month\' = 3)') AS width,
    asset_id,
    multiIf(
        cell_width = 'quarter', toStartOfFifteenMinutes(observed_at),
        cell_width = 'day', toStartOfDay(observed_at),
        toDateTime(toStartOfMonth(observed_at), 'UTC')) AS cell,
    apr,
    bitShiftLeft(toUInt64(observed_at - cell), 42) + version AS rank
FROM borrow_rate
ARRAY JOIN ['quarter', 'day', 'month'] AS cell_width
COMMENT 'Feeds borrow_rate_rollup from each insert into borrow_rate';
