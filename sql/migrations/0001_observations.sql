-- All histories: what was observed, and summaries of it. People read the views, one for each history, such as price; the
-- service makes them from its catalogue.

CREATE TABLE IF NOT EXISTS observation{local}{on_cluster}
(
    history LowCardinality(String) COMMENT 'Name of the history, such as price; there is a view of the same name',
    asset_id LowCardinality(String) COMMENT 'Asset id; the empty string is the total over all assets',
    observed_at DateTime('UTC') CODEC(Delta, T64, ZSTD(1)) COMMENT 'Instant of the observation, whole seconds',
    value Decimal(38, 18) CODEC(GCD, ZSTD(1)) COMMENT 'The value, in the unit of the history; 0 where known is false',
    known Bool DEFAULT true COMMENT 'Whether there is a value; false says that there is none from this instant to the next observation, and value is 0',
    version UInt64 CODEC(Delta, T64, ZSTD(1)) COMMENT 'Version of the run that wrote the row; of several rows for one history, asset and instant, the greatest version wins',
    INDEX version_range version TYPE minmax GRANULARITY 1
)
ENGINE = {replicated}ReplacingMergeTree(version)
PARTITION BY toYYYYMM(observed_at)
ORDER BY (history, asset_id, observed_at)
COMMENT 'Every observation of every history; query with FINAL to see corrections applied';

CREATE TABLE IF NOT EXISTS cell{local}{on_cluster}
(
    history LowCardinality(String) COMMENT 'Name of the history',
    width Enum8('quarter' = 1, 'day' = 2, 'month' = 3) COMMENT 'Width of the cell: 15 minutes, a UTC day, or a UTC month',
    asset_id LowCardinality(String) COMMENT 'Asset id; the empty string is the total over all assets',
    cell DateTime('UTC') CODEC(Delta, ZSTD(1)) COMMENT 'Instant at which the cell begins',
    first_at DateTime('UTC') CODEC(Delta, T64, ZSTD(1)) COMMENT 'Instant of the first observation in the cell',
    last_at DateTime('UTC') CODEC(Delta, T64, ZSTD(1)) COMMENT 'Instant of the last observation in the cell',
    count UInt32 CODEC(T64, ZSTD(1)) COMMENT 'Number of observations in the cell that have a value',
    unknown UInt32 DEFAULT 0 CODEC(T64, ZSTD(1)) COMMENT 'Number of observations in the cell that say that there is no value; the columns from count to area leave them out',
    open Decimal(38, 18) CODEC(GCD, ZSTD(1)) COMMENT 'The value at the first observation in the cell',
    high Decimal(38, 18) CODEC(GCD, ZSTD(1)) COMMENT 'The greatest value observed in the cell',
    low Decimal(38, 18) CODEC(GCD, ZSTD(1)) COMMENT 'The least value observed in the cell',
    close Decimal(38, 18) CODEC(GCD, ZSTD(1)) COMMENT 'The value at the last observation in the cell',
    known Bool DEFAULT true COMMENT 'Whether there is a value at last_at; else close is 0',
    area Decimal(76, 18) CODEC(GCD, ZSTD(1)) COMMENT 'Sum of each value times the seconds that it held, from first_at to last_at',
    seconds UInt32 DEFAULT last_at - first_at CODEC(T64, ZSTD(1)) COMMENT 'Seconds with a value from first_at to last_at, 0 if it has one observation. Values also hold before and after: the views by the hour and day have means',
    version UInt64 CODEC(Delta, T64, ZSTD(1)) COMMENT 'When the cell was computed, in unix nanoseconds by the clock of ClickHouse; of several rows for one cell, the greatest version wins'
)
ENGINE = {replicated}ReplacingMergeTree(version)
PARTITION BY (width, if(width = 'quarter', toYYYYMM(cell), 0))
ORDER BY (history, width, asset_id, cell)
COMMENT 'Open, high, low and close of every history in cells of 15 minutes, a UTC day and a UTC month; leave out the period that has not ended, and query with FINAL';
