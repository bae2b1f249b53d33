-- Liquidations since the first one (ledger family loans): the debt that was repaid, beside the loans originated. The
-- collateral that was taken is in account_event.

CREATE TABLE IF NOT EXISTS liquidations
(
    asset_id LowCardinality(String) COMMENT 'Asset id of the debt; the empty string is the total over all assets',
    observed_at DateTime('UTC') CODEC(Delta, T64, ZSTD(1)) COMMENT 'Instant of the snapshot, whole seconds',
    usd Decimal(38, 18) CODEC(GCD, ZSTD(1)) COMMENT 'USD value of all debt that liquidations have repaid so far, each at the time of the liquidation',
    version UInt64 CODEC(Delta, T64, ZSTD(1)) COMMENT 'Unix milliseconds of the run that wrote the row; of several rows for one asset and instant, the greatest version wins'
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYYYYMM(observed_at)
ORDER BY (asset_id, observed_at)
COMMENT 'Debt repaid by liquidations since the first one of the protocol, at each snapshot of loans; query with FINAL, or argMax(usd, version), to see corrections applied';

CREATE TABLE IF NOT EXISTS liquidations_cell
(
    width Enum8('quarter' = 1, 'day' = 2, 'month' = 3) COMMENT 'Width of the cell: 15 minutes, a UTC day, or a UTC month',
    asset_id LowCardinality(String) COMMENT 'Asset id of the debt; the empty string is the total over all assets',
    cell DateTime('UTC') CODEC(Delta, ZSTD(1)) COMMENT 'Instant at which the cell begins',
    first_at DateTime('UTC') CODEC(Delta, T64, ZSTD(1)) COMMENT 'Instant of the first observation in the cell',
    last_at DateTime('UTC') CODEC(Delta, T64, ZSTD(1)) COMMENT 'Instant of the last observation in the cell',
    count UInt32 CODEC(T64, ZSTD(1)) COMMENT 'Number of observations in the cell',
    open Decimal(38, 18) CODEC(GCD, ZSTD(1)) COMMENT 'USD value of all debt that liquidations have repaid so far, at the first observation in the cell',
    high Decimal(38, 18) CODEC(GCD, ZSTD(1)) COMMENT 'The greatest value observed in the cell',
    low Decimal(38, 18) CODEC(GCD, ZSTD(1)) COMMENT 'The least value observed in the cell',
    close Decimal(38, 18) CODEC(GCD, ZSTD(1)) COMMENT 'The value at the last observation in the cell',
    area Decimal(76, 18) CODEC(GCD, ZSTD(1)) COMMENT 'Sum of each value times the seconds that it held, from first_at to last_at; divided by these seconds, the time-weighted mean between both',
    rank UInt64 CODEC(Delta, T64, ZSTD(1)) COMMENT 'Sum of the versions of the observations in the cell; of several rows for one cell the greatest rank holds'
)
ENGINE = ReplacingMergeTree(rank)
PARTITION BY (width, if(width = 'quarter', toYYYYMM(cell), 0))
ORDER BY (width, asset_id, cell)
COMMENT 'Open, high, low and close of the liquidations so far in each cell of 15 minutes, one day and one month that has ended; query with FINAL';
