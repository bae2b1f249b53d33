-- The protocol token and its unlock arrangements as of each snapshot (ledger dataset ptoken).

CREATE TABLE IF NOT EXISTS ptoken_state{on_cluster}
(
    observed_at DateTime('UTC') CODEC(Delta, T64, ZSTD(1)) COMMENT 'Instant of the snapshot',
    asset_id LowCardinality(String) COMMENT 'Asset id of the protocol token',
    emission_rate UInt256 CODEC(ZSTD(1)) COMMENT 'Denom units emitted per year',
    tokens_per_weight UInt256 CODEC(ZSTD(1)) COMMENT 'Factor from weight to tokens',
    total_issued UInt256 CODEC(ZSTD(1)) COMMENT 'Denom units issued, locked or unlocked, including all claimed and claimable rewards',
    total_claimed UInt256 CODEC(ZSTD(1)) COMMENT 'Denom units claimed, locked or unlocked, excluding unclaimed rewards',
    total_locked UInt256 CODEC(ZSTD(1)) COMMENT 'Denom units locked, including unlocked units that are not claimed yet',
    total_supply UInt256 CODEC(ZSTD(1)) COMMENT 'Total supply in denom units, including locked and unissued units',
    rewards_last_distributed DateTime('UTC') COMMENT 'Instant at which staking rewards were last distributed',
    stake_acc Decimal(38, 18) CODEC(ZSTD(1)) COMMENT 'Emission rate divided by total reward weight, accumulated over time',
    version UInt64 CODEC(Delta, T64, ZSTD(1)) COMMENT 'Version of the commit that wrote the row. The row counts once snapshot lists that commit'
)
ENGINE = {replicated}ReplacingMergeTree{copied}
PARTITION BY toYYYYMM(observed_at)
ORDER BY (observed_at, version)
SETTINGS index_granularity = 1024
COMMENT 'The protocol token at each snapshot';

CREATE TABLE IF NOT EXISTS ptoken_pool{on_cluster}
(
    observed_at DateTime('UTC') CODEC(Delta, T64, ZSTD(1)) COMMENT 'Instant of the snapshot',
    pool UInt32 COMMENT 'Index of the staking pool',
    duration UInt64 COMMENT 'Seconds of lock-up',
    reward_weight Decimal(38, 18) CODEC(ZSTD(1)) COMMENT 'Multiplier of rewards',
    gov_weight Decimal(38, 18) CODEC(ZSTD(1)) COMMENT 'Multiplier of votes',
    health_weight Decimal(38, 18) CODEC(ZSTD(1)) COMMENT 'Multiplier of the stake for the health of borrow accounts',
    flash_loan_weight Decimal(38, 18) CODEC(ZSTD(1)) COMMENT 'Multiplier of the stake for flash loans',
    total_bonded UInt256 CODEC(ZSTD(1)) COMMENT 'Denom units staked to the pool',
    version UInt64 CODEC(Delta, T64, ZSTD(1)) COMMENT 'Version of the commit that wrote the row. The row counts once snapshot lists that commit'
)
ENGINE = {replicated}ReplacingMergeTree{copied}
PARTITION BY toYYYYMM(observed_at)
ORDER BY (observed_at, pool, version)
SETTINGS index_granularity = 1024
COMMENT 'Staking pools of the protocol token at each snapshot';

CREATE TABLE IF NOT EXISTS unlock_arrangement{on_cluster}
(
    observed_at DateTime('UTC') CODEC(Delta, T64, ZSTD(1)) COMMENT 'Instant of the snapshot',
    address String COMMENT 'Address of the beneficiary',
    arrangement UInt32 COMMENT 'Index among the arrangements of the address',
    member_class LowCardinality(String) COMMENT 'Group of the beneficiary: team, advisor or investor; empty if the source does not say',
    kind LowCardinality(String) COMMENT 'Schedule: linear (from begins_at to ends_at) or lump_sum (all at begins_at)',
    amount UInt256 CODEC(ZSTD(1)) COMMENT 'Denom units of the whole arrangement',
    claimed UInt256 CODEC(ZSTD(1)) COMMENT 'Denom units claimed so far',
    begins_at DateTime('UTC') COMMENT 'Instant at which unlocking begins',
    ends_at Nullable(DateTime('UTC')) COMMENT 'Instant at which everything is unlocked; null for a lump sum',
    expires_at Nullable(DateTime('UTC')) COMMENT 'Instant from which nothing more can be claimed; null means never',
    last_claimed_at Nullable(DateTime('UTC')) COMMENT 'Instant of the last claim; null if there was none',
    admin String COMMENT 'Address that may reclaim what is locked',
    reclaimed_at Nullable(DateTime('UTC')) COMMENT 'Instant at which the admin reclaimed; null means never',
    staked UInt256 CODEC(ZSTD(1)) COMMENT 'Denom units that the beneficiary stakes at the snapshot',
    held UInt256 CODEC(ZSTD(1)) COMMENT 'Denom units that the beneficiary holds at the snapshot',
    version UInt64 CODEC(Delta, T64, ZSTD(1)) COMMENT 'Version of the commit that wrote the row. The row counts once snapshot lists that commit'
)
ENGINE = {replicated}ReplacingMergeTree{copied}
PARTITION BY toYYYYMM(observed_at)
ORDER BY (observed_at, address, arrangement, version)
SETTINGS index_granularity = 1024
COMMENT 'Unlock arrangements at each snapshot';
