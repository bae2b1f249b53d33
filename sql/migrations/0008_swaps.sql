-- Swap contracts as of each snapshot (ledger dataset routes).

CREATE TABLE IF NOT EXISTS swap_route{on_cluster}
(
    observed_at DateTime('UTC') CODEC(Delta, T64, ZSTD(1)) COMMENT 'Instant of the snapshot',
    contract String COMMENT 'Address of the swap contract',
    source String COMMENT 'Denom to swap from; empty in the only row of a contract without routes',
    targets Array(String) CODEC(ZSTD(1)) COMMENT 'Denoms that the source can be swapped to',
    version UInt64 CODEC(Delta, T64, ZSTD(1)) COMMENT 'Version of the commit that wrote the row. The row counts once snapshot lists that commit'
)
ENGINE = {replicated}ReplacingMergeTree{copied}
PARTITION BY toYYYYMM(observed_at)
ORDER BY (observed_at, contract, source, version)
SETTINGS index_granularity = 1024
COMMENT 'Routes of swap contracts at each snapshot';
