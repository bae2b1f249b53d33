-- All histories: observations, and rollups that summarize them. People read the views, one for each history, such as price.

CREATE TABLE IF NOT EXISTS observation{local}{on_cluster}
(
    history LowCardinality(String) COMMENT 'Name of the history, such as price. A view of the same name shows it',
    asset_id LowCardinality(String) COMMENT 'Asset id. The empty string stands for the total over all assets',
    observed_at DateTime('UTC') CODEC(Delta, T64, ZSTD(1)) COMMENT 'Instant of the observation, in whole seconds',
    value Decimal(38, 18) CODEC(GCD, ZSTD(1)) COMMENT 'The value, in the unit of the history. 0 if known is false',
    known Bool DEFAULT true COMMENT 'Whether the value is known. If false, the history has no value from this instant to the next observation',
    version UInt64 CODEC(Delta, T64, ZSTD(1)) COMMENT 'Version of the commit that wrote the row. The greatest version wins among rows with the same history, asset and instant',
    INDEX version_range version TYPE minmax GRANULARITY 1
)
ENGINE = {replicated}ReplacingMergeTree(version)
PARTITION BY toYYYYMM(observed_at)
ORDER BY (history, asset_id, observed_at)
COMMENT 'Every observation of every history; query with FINAL to see corrections applied';

CREATE TABLE IF NOT EXISTS rollup{local}{on_cluster}
(
    history LowCardinality(String) COMMENT 'Name of the history',
    width Enum8('15min' = 1, 'day' = 2, 'month' = 3) COMMENT 'Width of the rollup: 15 minutes, a UTC day, or a UTC month',
    asset_id LowCardinality(String) COMMENT 'Asset id. The empty string stands for the total over all assets',
    start DateTime('UTC') CODEC(Delta, ZSTD(1)) COMMENT 'First second of the rollup',
    first_at DateTime('UTC') CODEC(Delta, T64, ZSTD(1)) COMMENT 'Instant of the first observation in the rollup',
    last_at DateTime('UTC') CODEC(Delta, T64, ZSTD(1)) COMMENT 'Instant of the last observation in the rollup',
    count UInt32 CODEC(T64, ZSTD(1)) COMMENT 'Number of observations in the rollup with a known value',
    unknown UInt32 DEFAULT 0 CODEC(T64, ZSTD(1)) COMMENT 'Number of observations in the rollup without a known value. The columns count, open, high, low and area ignore them',
    open Decimal(38, 18) CODEC(GCD, ZSTD(1)) COMMENT 'First known value in the rollup',
    high Decimal(38, 18) CODEC(GCD, ZSTD(1)) COMMENT 'Greatest value in the rollup',
    low Decimal(38, 18) CODEC(GCD, ZSTD(1)) COMMENT 'Least value in the rollup',
    close Decimal(38, 18) CODEC(GCD, ZSTD(1)) COMMENT 'Value of the last observation in the rollup. 0 if known is false',
    known Bool DEFAULT true COMMENT 'Whether the last observation has a known value',
    area Decimal(76, 18) CODEC(GCD, ZSTD(1)) COMMENT 'Sum of each value times the seconds for which it was valid, from first_at to last_at',
    seconds UInt32 DEFAULT last_at - first_at CODEC(T64, ZSTD(1)) COMMENT 'Seconds with a known value from first_at to last_at. 0 if the rollup has one observation. Values are also valid outside of this time: for means, read the views by the hour and day',
    version UInt64 CODEC(Delta, T64, ZSTD(1)) COMMENT 'Time of the computation, in unix nanoseconds by the clock of ClickHouse. The greatest version wins among rows for the same rollup'
)
ENGINE = {replicated}ReplacingMergeTree(version)
PARTITION BY (width, if(width = '15min', toYYYYMM(start), 0))
ORDER BY (history, width, asset_id, start)
COMMENT 'Open, high, low and close of every history for each 15 minutes, UTC day and UTC month. Ignore the period that has not ended; query with FINAL';
