-- Events of lending, and what they come to over time (ledger family loans).

CREATE TABLE IF NOT EXISTS event
(
    at DateTime('UTC') CODEC(DoubleDelta, ZSTD(1)) COMMENT 'Instant of the event, whole seconds; a part of a second counts as a whole one',
    id String CODEC(ZSTD(1)) COMMENT 'Unique id of the event',
    kind LowCardinality(String) COMMENT 'What happened: borrow, repay, lend, redeem, flash_loan or liquidation',
    asset_id LowCardinality(String) COMMENT 'Asset id',
    address String CODEC(ZSTD(1)) COMMENT 'Address that acted, or that was liquidated',
    amount UInt256 CODEC(ZSTD(1)) COMMENT 'Amount in denom units of the asset',
    usd Decimal(38, 18) CODEC(ZSTD(1)) COMMENT 'USD value of the amount at the time of the event',
    version UInt64 CODEC(DoubleDelta, ZSTD(1)) COMMENT 'Unix milliseconds of the run that wrote it; of several rows for one event the greatest version holds'
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYYYYMM(at)
ORDER BY (at, id)
COMMENT 'Every event of lending up to the newest snapshot of loans; query with FINAL, because a run that was repeated writes events again';

CREATE TABLE IF NOT EXISTS loans_originated
(
    asset_id LowCardinality(String) COMMENT 'Asset id of the loans; the empty string is the total over all assets',
    observed_at DateTime('UTC') CODEC(DoubleDelta, ZSTD(1)) COMMENT 'Instant of the observation, whole seconds',
    usd Decimal(38, 18) CODEC(ZSTD(1)) COMMENT 'USD value of all loans so far, each at the time of the loan',
    version UInt64 CODEC(DoubleDelta, ZSTD(1)) COMMENT 'Unix milliseconds of the run that wrote it; of several rows for one asset and instant the greatest version holds'
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYYYYMM(observed_at)
ORDER BY (asset_id, observed_at)
COMMENT 'Loans originated since the first loan of the protocol, at each snapshot; query with FINAL, or argMax(usd, version), to see corrections applied';

CREATE TABLE IF NOT EXISTS loans_originated_rollup
(
    width Enum8('quarter' = 1, 'day' = 2, 'month' = 3) COMMENT 'Width of the cell: 15 minutes, a UTC day, or a UTC month',
    asset_id LowCardinality(String) COMMENT 'Asset id of the loans; the empty string is the total over all assets',
    cell DateTime('UTC') CODEC(Delta, ZSTD(1)) COMMENT 'Instant at which the cell begins',
    usd Decimal(38, 18) CODEC(ZSTD(1)) COMMENT 'USD value of all loans up to the last observation in the cell',
    rank UInt64 CODEC(T64, LZ4) COMMENT '(observed_at - cell) * 2^42 + version of that observation; of several rows for one cell the greatest rank holds',
    observed_at DateTime('UTC') ALIAS cell + bitShiftRight(rank, 42) COMMENT 'Instant of the last observation in the cell'
)
ENGINE = ReplacingMergeTree(rank)
PARTITION BY (width, if(width = 'quarter', toYYYYMM(cell), 0))
ORDER BY (width, asset_id, cell)
COMMENT 'Loans originated at the end in each cell of 15 minutes, one day and one month; query with FINAL or argMax(usd, rank)';

CREATE MATERIALIZED VIEW IF NOT EXISTS loans_originated_rollup_view TO loans_originated_rollup
AS SELECT
    CAST(cell_width, 'Enum8(\'quarter\' = 1, \'day\' = 2, \'month\' = 3)') AS width,
    asset_id,
    multiIf(
        cell_width = 'quarter', toStartOfFifteenMinutes(observed_at),
        cell_width = 'day', toStartOfDay(observed_at),
        toDateTime(toStartOfMonth(observed_at), 'UTC')) AS cell,
    usd,
    bitShiftLeft(toUInt64(observed_at - cell), 42) + version AS rank
FROM loans_originated
ARRAY JOIN ['quarter', 'day', 'month'] AS cell_width
COMMENT 'Feeds loans_originated_rollup from each insert into loans_originated';

CREATE TABLE IF NOT EXISTS flash_loan_volume
(
    observed_at DateTime('UTC') CODEC(DoubleDelta, ZSTD(1)) COMMENT 'Instant of the snapshot',
    usd Decimal(38, 18) CODEC(ZSTD(1)) COMMENT 'USD value of all flash loans so far, each at the time of the loan',
    version UInt64 CODEC(DoubleDelta, ZSTD(1)) COMMENT 'Unix milliseconds of the run that wrote it; of several rows for one snapshot the greatest version holds'
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYYYYMM(observed_at)
ORDER BY observed_at
COMMENT 'Flash loans since the first one of the protocol, at each snapshot';
