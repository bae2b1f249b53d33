-- Swap contracts as of each snapshot (ledger family routes).

CREATE TABLE IF NOT EXISTS swap_route
(
    contract String COMMENT 'Address of the swap contract',
    source String COMMENT 'Denom that is swapped; empty in the one row of a contract without routes',
    observed_at DateTime('UTC') CODEC(DoubleDelta, ZSTD(1)) COMMENT 'Instant of the snapshot',
    targets Array(String) CODEC(ZSTD(1)) COMMENT 'Denoms that it can be swapped to',
    version UInt64 CODEC(DoubleDelta, ZSTD(1)) COMMENT 'Unix milliseconds of the run that wrote it; of several rows for one contract, denom and snapshot the greatest version holds'
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYYYYMM(observed_at)
ORDER BY (contract, source, observed_at)
SETTINGS index_granularity = 1024
COMMENT 'Routes of swap contracts at each snapshot';
