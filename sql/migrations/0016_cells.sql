-- Cells of time: what the observations of 15 minutes, of a UTC day and of a UTC month come to, for each series. They are
-- computed from the raw rows by the run that closes them, and again by every rewrite that touches them. Pages read them
-- instead of raw rows.

CREATE TABLE IF NOT EXISTS price_cell
(
    width Enum8('quarter' = 1, 'day' = 2, 'month' = 3) COMMENT 'Width of the cell: 15 minutes, a UTC day, or a UTC month',
    asset_id LowCardinality(String) COMMENT 'Asset id',
    cell DateTime('UTC') CODEC(Delta, ZSTD(1)) COMMENT 'Instant at which the cell begins',
    first_at DateTime('UTC') CODEC(Delta, T64, ZSTD(1)) COMMENT 'Instant of the first observation in the cell',
    last_at DateTime('UTC') CODEC(Delta, T64, ZSTD(1)) COMMENT 'Instant of the last observation in the cell',
    count UInt32 CODEC(T64, ZSTD(1)) COMMENT 'Number of observations in the cell',
    open Decimal(38, 18) CODEC(GCD, ZSTD(1)) COMMENT 'USD per standard unit at the first observation in the cell',
    high Decimal(38, 18) CODEC(GCD, ZSTD(1)) COMMENT 'The greatest value observed in the cell',
    low Decimal(38, 18) CODEC(GCD, ZSTD(1)) COMMENT 'The least value observed in the cell',
    close Decimal(38, 18) CODEC(GCD, ZSTD(1)) COMMENT 'The value at the last observation in the cell',
    area Decimal(76, 18) CODEC(GCD, ZSTD(1)) COMMENT 'Sum of each value times the seconds that it held, from first_at to last_at; divided by these seconds, the time-weighted mean between both',
    rank UInt64 CODEC(Delta, T64, ZSTD(1)) COMMENT 'Sum of the versions of the observations in the cell; of several rows for one cell the greatest rank holds'
)
ENGINE = ReplacingMergeTree(rank)
PARTITION BY (width, if(width = 'quarter', toYYYYMM(cell), 0))
ORDER BY (width, asset_id, cell)
COMMENT 'Open, high, low and close of the prices in each cell of 15 minutes, one day and one month that has ended; query with FINAL';

CREATE TABLE IF NOT EXISTS lend_rate_cell
(
    width Enum8('quarter' = 1, 'day' = 2, 'month' = 3) COMMENT 'Width of the cell: 15 minutes, a UTC day, or a UTC month',
    asset_id LowCardinality(String) COMMENT 'Asset id',
    cell DateTime('UTC') CODEC(Delta, ZSTD(1)) COMMENT 'Instant at which the cell begins',
    first_at DateTime('UTC') CODEC(Delta, T64, ZSTD(1)) COMMENT 'Instant of the first observation in the cell',
    last_at DateTime('UTC') CODEC(Delta, T64, ZSTD(1)) COMMENT 'Instant of the last observation in the cell',
    count UInt32 CODEC(T64, ZSTD(1)) COMMENT 'Number of observations in the cell',
    open Decimal(38, 18) CODEC(GCD, ZSTD(1)) COMMENT 'Yearly rate that lenders of the asset earn, as a fraction, at the first observation in the cell',
    high Decimal(38, 18) CODEC(GCD, ZSTD(1)) COMMENT 'The greatest value observed in the cell',
    low Decimal(38, 18) CODEC(GCD, ZSTD(1)) COMMENT 'The least value observed in the cell',
    close Decimal(38, 18) CODEC(GCD, ZSTD(1)) COMMENT 'The value at the last observation in the cell',
    area Decimal(76, 18) CODEC(GCD, ZSTD(1)) COMMENT 'Sum of each value times the seconds that it held, from first_at to last_at; divided by these seconds, the time-weighted mean between both',
    rank UInt64 CODEC(Delta, T64, ZSTD(1)) COMMENT 'Sum of the versions of the observations in the cell; of several rows for one cell the greatest rank holds'
)
ENGINE = ReplacingMergeTree(rank)
PARTITION BY (width, if(width = 'quarter', toYYYYMM(cell), 0))
ORDER BY (width, asset_id, cell)
COMMENT 'Open, high, low and close of the lend rates in each cell of 15 minutes, one day and one month that has ended; query with FINAL';

CREATE TABLE IF NOT EXISTS borrow_rate_cell
(
    width Enum8('quarter' = 1, 'day' = 2, 'month' = 3) COMMENT 'Width of the cell: 15 minutes, a UTC day, or a UTC month',
    asset_id LowCardinality(String) COMMENT 'Asset id',
    cell DateTime('UTC') CODEC(Delta, ZSTD(1)) COMMENT 'Instant at which the cell begins',
    first_at DateTime('UTC') CODEC(Delta, T64, ZSTD(1)) COMMENT 'Instant of the first observation in the cell',
    last_at DateTime('UTC') CODEC(Delta, T64, ZSTD(1)) COMMENT 'Instant of the last observation in the cell',
    count UInt32 CODEC(T64, ZSTD(1)) COMMENT 'Number of observations in the cell',
    open Decimal(38, 18) CODEC(GCD, ZSTD(1)) COMMENT 'Yearly rate that borrowers of the asset owe, as a fraction, at the first observation in the cell',
    high Decimal(38, 18) CODEC(GCD, ZSTD(1)) COMMENT 'The greatest value observed in the cell',
    low Decimal(38, 18) CODEC(GCD, ZSTD(1)) COMMENT 'The least value observed in the cell',
    close Decimal(38, 18) CODEC(GCD, ZSTD(1)) COMMENT 'The value at the last observation in the cell',
    area Decimal(76, 18) CODEC(GCD, ZSTD(1)) COMMENT 'Sum of each value times the seconds that it held, from first_at to last_at; divided by these seconds, the time-weighted mean between both',
    rank UInt64 CODEC(Delta, T64, ZSTD(1)) COMMENT 'Sum of the versions of the observations in the cell; of several rows for one cell the greatest rank holds'
)
ENGINE = ReplacingMergeTree(rank)
PARTITION BY (width, if(width = 'quarter', toYYYYMM(cell), 0))
ORDER BY (width, asset_id, cell)
COMMENT 'Open, high, low and close of the borrow rates in each cell of 15 minutes, one day and one month that has ended; query with FINAL';

CREATE TABLE IF NOT EXISTS loans_originated_cell
(
    width Enum8('quarter' = 1, 'day' = 2, 'month' = 3) COMMENT 'Width of the cell: 15 minutes, a UTC day, or a UTC month',
    asset_id LowCardinality(String) COMMENT 'Asset id of the loans; the empty string is the total over all assets',
    cell DateTime('UTC') CODEC(Delta, ZSTD(1)) COMMENT 'Instant at which the cell begins',
    first_at DateTime('UTC') CODEC(Delta, T64, ZSTD(1)) COMMENT 'Instant of the first observation in the cell',
    last_at DateTime('UTC') CODEC(Delta, T64, ZSTD(1)) COMMENT 'Instant of the last observation in the cell',
    count UInt32 CODEC(T64, ZSTD(1)) COMMENT 'Number of observations in the cell',
    open Decimal(38, 18) CODEC(GCD, ZSTD(1)) COMMENT 'USD value of all loans so far at the first observation in the cell',
    high Decimal(38, 18) CODEC(GCD, ZSTD(1)) COMMENT 'The greatest value observed in the cell',
    low Decimal(38, 18) CODEC(GCD, ZSTD(1)) COMMENT 'The least value observed in the cell',
    close Decimal(38, 18) CODEC(GCD, ZSTD(1)) COMMENT 'The value at the last observation in the cell',
    area Decimal(76, 18) CODEC(GCD, ZSTD(1)) COMMENT 'Sum of each value times the seconds that it held, from first_at to last_at; divided by these seconds, the time-weighted mean between both',
    rank UInt64 CODEC(Delta, T64, ZSTD(1)) COMMENT 'Sum of the versions of the observations in the cell; of several rows for one cell the greatest rank holds'
)
ENGINE = ReplacingMergeTree(rank)
PARTITION BY (width, if(width = 'quarter', toYYYYMM(cell), 0))
ORDER BY (width, asset_id, cell)
COMMENT 'Open, high, low and close of the loans originated in each cell of 15 minutes, one day and one month that has ended; query with FINAL';
