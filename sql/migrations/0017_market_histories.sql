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

CREATE TABLE IF NOT EXISTS tvl_cell
(
    width Enum8('quarter' = 1, 'day' = 2, 'month' = 3) COMMENT 'Width of the cell: 15 minutes, a UTC day, or a UTC month',
    asset_id LowCardinality(String) COMMENT 'Always the empty string, which stands for all assets',
    cell DateTime('UTC') CODEC(Delta, ZSTD(1)) COMMENT 'Instant at which the cell begins',
    first_at DateTime('UTC') CODEC(Delta, T64, ZSTD(1)) COMMENT 'Instant of the first observation in the cell',
    last_at DateTime('UTC') CODEC(Delta, T64, ZSTD(1)) COMMENT 'Instant of the last observation in the cell',
    count UInt32 CODEC(T64, ZSTD(1)) COMMENT 'Number of observations in the cell',
    open Decimal(38, 18) CODEC(GCD, ZSTD(1)) COMMENT 'USD value of all deposits, and of all collateral that is no receipt token, at the first observation in the cell',
    high Decimal(38, 18) CODEC(GCD, ZSTD(1)) COMMENT 'The greatest value observed in the cell',
    low Decimal(38, 18) CODEC(GCD, ZSTD(1)) COMMENT 'The least value observed in the cell',
    close Decimal(38, 18) CODEC(GCD, ZSTD(1)) COMMENT 'The value at the last observation in the cell',
    area Decimal(76, 18) CODEC(GCD, ZSTD(1)) COMMENT 'Sum of each value times the seconds that it held, from first_at to last_at; divided by these seconds, the time-weighted mean between both',
    rank UInt64 CODEC(Delta, T64, ZSTD(1)) COMMENT 'Sum of the versions of the observations in the cell; of several rows for one cell the greatest rank holds'
)
ENGINE = ReplacingMergeTree(rank)
PARTITION BY (width, if(width = 'quarter', toYYYYMM(cell), 0))
ORDER BY (width, asset_id, cell)
COMMENT 'Open, high, low and close of the total value locked in each cell of 15 minutes, one day and one month that has ended; query with FINAL';

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

CREATE TABLE IF NOT EXISTS net_tvl_cell
(
    width Enum8('quarter' = 1, 'day' = 2, 'month' = 3) COMMENT 'Width of the cell: 15 minutes, a UTC day, or a UTC month',
    asset_id LowCardinality(String) COMMENT 'Always the empty string, which stands for all assets',
    cell DateTime('UTC') CODEC(Delta, ZSTD(1)) COMMENT 'Instant at which the cell begins',
    first_at DateTime('UTC') CODEC(Delta, T64, ZSTD(1)) COMMENT 'Instant of the first observation in the cell',
    last_at DateTime('UTC') CODEC(Delta, T64, ZSTD(1)) COMMENT 'Instant of the last observation in the cell',
    count UInt32 CODEC(T64, ZSTD(1)) COMMENT 'Number of observations in the cell',
    open Decimal(38, 18) CODEC(GCD, ZSTD(1)) COMMENT 'USD value of all deposits, and of all collateral that is no receipt token, less that of all debt, at the first observation in the cell',
    high Decimal(38, 18) CODEC(GCD, ZSTD(1)) COMMENT 'The greatest value observed in the cell',
    low Decimal(38, 18) CODEC(GCD, ZSTD(1)) COMMENT 'The least value observed in the cell',
    close Decimal(38, 18) CODEC(GCD, ZSTD(1)) COMMENT 'The value at the last observation in the cell',
    area Decimal(76, 18) CODEC(GCD, ZSTD(1)) COMMENT 'Sum of each value times the seconds that it held, from first_at to last_at; divided by these seconds, the time-weighted mean between both',
    rank UInt64 CODEC(Delta, T64, ZSTD(1)) COMMENT 'Sum of the versions of the observations in the cell; of several rows for one cell the greatest rank holds'
)
ENGINE = ReplacingMergeTree(rank)
PARTITION BY (width, if(width = 'quarter', toYYYYMM(cell), 0))
ORDER BY (width, asset_id, cell)
COMMENT 'Open, high, low and close of the net total value locked in each cell of 15 minutes, one day and one month that has ended; query with FINAL';

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

CREATE TABLE IF NOT EXISTS deposit_value_cell
(
    width Enum8('quarter' = 1, 'day' = 2, 'month' = 3) COMMENT 'Width of the cell: 15 minutes, a UTC day, or a UTC month',
    asset_id LowCardinality(String) COMMENT 'Asset id',
    cell DateTime('UTC') CODEC(Delta, ZSTD(1)) COMMENT 'Instant at which the cell begins',
    first_at DateTime('UTC') CODEC(Delta, T64, ZSTD(1)) COMMENT 'Instant of the first observation in the cell',
    last_at DateTime('UTC') CODEC(Delta, T64, ZSTD(1)) COMMENT 'Instant of the last observation in the cell',
    count UInt32 CODEC(T64, ZSTD(1)) COMMENT 'Number of observations in the cell',
    open Decimal(38, 18) CODEC(GCD, ZSTD(1)) COMMENT 'USD value of the principal owed to lenders of the asset, at the first observation in the cell',
    high Decimal(38, 18) CODEC(GCD, ZSTD(1)) COMMENT 'The greatest value observed in the cell',
    low Decimal(38, 18) CODEC(GCD, ZSTD(1)) COMMENT 'The least value observed in the cell',
    close Decimal(38, 18) CODEC(GCD, ZSTD(1)) COMMENT 'The value at the last observation in the cell',
    area Decimal(76, 18) CODEC(GCD, ZSTD(1)) COMMENT 'Sum of each value times the seconds that it held, from first_at to last_at; divided by these seconds, the time-weighted mean between both',
    rank UInt64 CODEC(Delta, T64, ZSTD(1)) COMMENT 'Sum of the versions of the observations in the cell; of several rows for one cell the greatest rank holds'
)
ENGINE = ReplacingMergeTree(rank)
PARTITION BY (width, if(width = 'quarter', toYYYYMM(cell), 0))
ORDER BY (width, asset_id, cell)
COMMENT 'Open, high, low and close of the value of deposits in each cell of 15 minutes, one day and one month that has ended; query with FINAL';

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

CREATE TABLE IF NOT EXISTS collateral_value_cell
(
    width Enum8('quarter' = 1, 'day' = 2, 'month' = 3) COMMENT 'Width of the cell: 15 minutes, a UTC day, or a UTC month',
    asset_id LowCardinality(String) COMMENT 'Asset id',
    cell DateTime('UTC') CODEC(Delta, ZSTD(1)) COMMENT 'Instant at which the cell begins',
    first_at DateTime('UTC') CODEC(Delta, T64, ZSTD(1)) COMMENT 'Instant of the first observation in the cell',
    last_at DateTime('UTC') CODEC(Delta, T64, ZSTD(1)) COMMENT 'Instant of the last observation in the cell',
    count UInt32 CODEC(T64, ZSTD(1)) COMMENT 'Number of observations in the cell',
    open Decimal(38, 18) CODEC(GCD, ZSTD(1)) COMMENT 'USD value of the collateral posted in the asset, at the first observation in the cell',
    high Decimal(38, 18) CODEC(GCD, ZSTD(1)) COMMENT 'The greatest value observed in the cell',
    low Decimal(38, 18) CODEC(GCD, ZSTD(1)) COMMENT 'The least value observed in the cell',
    close Decimal(38, 18) CODEC(GCD, ZSTD(1)) COMMENT 'The value at the last observation in the cell',
    area Decimal(76, 18) CODEC(GCD, ZSTD(1)) COMMENT 'Sum of each value times the seconds that it held, from first_at to last_at; divided by these seconds, the time-weighted mean between both',
    rank UInt64 CODEC(Delta, T64, ZSTD(1)) COMMENT 'Sum of the versions of the observations in the cell; of several rows for one cell the greatest rank holds'
)
ENGINE = ReplacingMergeTree(rank)
PARTITION BY (width, if(width = 'quarter', toYYYYMM(cell), 0))
ORDER BY (width, asset_id, cell)
COMMENT 'Open, high, low and close of the value of collateral in each cell of 15 minutes, one day and one month that has ended; query with FINAL';

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

CREATE TABLE IF NOT EXISTS debt_value_cell
(
    width Enum8('quarter' = 1, 'day' = 2, 'month' = 3) COMMENT 'Width of the cell: 15 minutes, a UTC day, or a UTC month',
    asset_id LowCardinality(String) COMMENT 'Asset id',
    cell DateTime('UTC') CODEC(Delta, ZSTD(1)) COMMENT 'Instant at which the cell begins',
    first_at DateTime('UTC') CODEC(Delta, T64, ZSTD(1)) COMMENT 'Instant of the first observation in the cell',
    last_at DateTime('UTC') CODEC(Delta, T64, ZSTD(1)) COMMENT 'Instant of the last observation in the cell',
    count UInt32 CODEC(T64, ZSTD(1)) COMMENT 'Number of observations in the cell',
    open Decimal(38, 18) CODEC(GCD, ZSTD(1)) COMMENT 'USD value of the debt in the asset, with interest, at the first observation in the cell',
    high Decimal(38, 18) CODEC(GCD, ZSTD(1)) COMMENT 'The greatest value observed in the cell',
    low Decimal(38, 18) CODEC(GCD, ZSTD(1)) COMMENT 'The least value observed in the cell',
    close Decimal(38, 18) CODEC(GCD, ZSTD(1)) COMMENT 'The value at the last observation in the cell',
    area Decimal(76, 18) CODEC(GCD, ZSTD(1)) COMMENT 'Sum of each value times the seconds that it held, from first_at to last_at; divided by these seconds, the time-weighted mean between both',
    rank UInt64 CODEC(Delta, T64, ZSTD(1)) COMMENT 'Sum of the versions of the observations in the cell; of several rows for one cell the greatest rank holds'
)
ENGINE = ReplacingMergeTree(rank)
PARTITION BY (width, if(width = 'quarter', toYYYYMM(cell), 0))
ORDER BY (width, asset_id, cell)
COMMENT 'Open, high, low and close of the value of debt in each cell of 15 minutes, one day and one month that has ended; query with FINAL';

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

CREATE TABLE IF NOT EXISTS utilization_cell
(
    width Enum8('quarter' = 1, 'day' = 2, 'month' = 3) COMMENT 'Width of the cell: 15 minutes, a UTC day, or a UTC month',
    asset_id LowCardinality(String) COMMENT 'Asset id',
    cell DateTime('UTC') CODEC(Delta, ZSTD(1)) COMMENT 'Instant at which the cell begins',
    first_at DateTime('UTC') CODEC(Delta, T64, ZSTD(1)) COMMENT 'Instant of the first observation in the cell',
    last_at DateTime('UTC') CODEC(Delta, T64, ZSTD(1)) COMMENT 'Instant of the last observation in the cell',
    count UInt32 CODEC(T64, ZSTD(1)) COMMENT 'Number of observations in the cell',
    open Decimal(38, 18) CODEC(GCD, ZSTD(1)) COMMENT 'Debt in the asset divided by the principal owed to its lenders, as a fraction: 0.5 means 50 %, at the first observation in the cell',
    high Decimal(38, 18) CODEC(GCD, ZSTD(1)) COMMENT 'The greatest value observed in the cell',
    low Decimal(38, 18) CODEC(GCD, ZSTD(1)) COMMENT 'The least value observed in the cell',
    close Decimal(38, 18) CODEC(GCD, ZSTD(1)) COMMENT 'The value at the last observation in the cell',
    area Decimal(76, 18) CODEC(GCD, ZSTD(1)) COMMENT 'Sum of each value times the seconds that it held, from first_at to last_at; divided by these seconds, the time-weighted mean between both',
    rank UInt64 CODEC(Delta, T64, ZSTD(1)) COMMENT 'Sum of the versions of the observations in the cell; of several rows for one cell the greatest rank holds'
)
ENGINE = ReplacingMergeTree(rank)
PARTITION BY (width, if(width = 'quarter', toYYYYMM(cell), 0))
ORDER BY (width, asset_id, cell)
COMMENT 'Open, high, low and close of the utilization of deposits in each cell of 15 minutes, one day and one month that has ended; query with FINAL';
