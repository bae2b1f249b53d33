-- The protocol token and its unlock arrangements as of each snapshot (ledger family ptoken).

CREATE TABLE IF NOT EXISTS ptoken_state
(
    observed_at DateTime('UTC') CODEC(DoubleDelta, ZSTD(1)) COMMENT 'Instant of the snapshot',
    asset_id LowCardinality(String) COMMENT 'Asset id of the protocol token',
    emission_rate UInt256 CODEC(ZSTD(1)) COMMENT 'Denom units emitted a year',
    tokens_per_weight UInt256 CODEC(ZSTD(1)) COMMENT 'Factor from weight to tokens',
    total_issued UInt256 CODEC(ZSTD(1)) COMMENT 'Denom units issued, locked or not, with all rewards claimed or claimable',
    total_claimed UInt256 CODEC(ZSTD(1)) COMMENT 'Denom units claimed, locked or not, without unclaimed rewards',
    total_locked UInt256 CODEC(ZSTD(1)) COMMENT 'Denom units locked, with unlocked ones that are not claimed yet',
    total_supply UInt256 CODEC(ZSTD(1)) COMMENT 'Denom units in all, with locked and unissued ones',
    rewards_last_distributed DateTime('UTC') COMMENT 'Instant at which staking rewards were last distributed',
    stake_acc Decimal(38, 18) CODEC(ZSTD(1)) COMMENT 'Accumulator over time of the emission rate over the total reward weight',
    version UInt64 CODEC(DoubleDelta, ZSTD(1)) COMMENT 'Unix milliseconds of the run that wrote it; of several rows for one snapshot the greatest version holds'
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYYYYMM(observed_at)
ORDER BY observed_at
SETTINGS index_granularity = 1024
COMMENT 'The protocol token at each snapshot';

CREATE TABLE IF NOT EXISTS ptoken_pool
(
    pool UInt32 COMMENT 'Index of the staking pool',
    observed_at DateTime('UTC') CODEC(DoubleDelta, ZSTD(1)) COMMENT 'Instant of the snapshot',
    duration UInt64 COMMENT 'Seconds of lock-up',
    reward_weight Decimal(38, 18) CODEC(ZSTD(1)) COMMENT 'Multiplier of rewards',
    gov_weight Decimal(38, 18) CODEC(ZSTD(1)) COMMENT 'Multiplier of votes',
    health_weight Decimal(38, 18) CODEC(ZSTD(1)) COMMENT 'Multiplier of the stake in the health of borrow accounts',
    flash_loan_weight Decimal(38, 18) CODEC(ZSTD(1)) COMMENT 'Multiplier of the stake in flash loans',
    total_bonded UInt256 CODEC(ZSTD(1)) COMMENT 'Denom units staked to the pool',
    version UInt64 CODEC(DoubleDelta, ZSTD(1)) COMMENT 'Unix milliseconds of the run that wrote it; of several rows for one pool and snapshot the greatest version holds'
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYYYYMM(observed_at)
ORDER BY (pool, observed_at)
SETTINGS index_granularity = 1024
COMMENT 'Staking pools of the protocol token at each snapshot';

CREATE TABLE IF NOT EXISTS unlock_arrangement
(
    address String COMMENT 'Address of the beneficiary',
    arrangement UInt32 COMMENT 'Index among the arrangements of the address',
    observed_at DateTime('UTC') CODEC(DoubleDelta, ZSTD(1)) COMMENT 'Instant of the snapshot',
    member_class LowCardinality(String) COMMENT 'Group of the beneficiary: team, advisor or investor',
    kind LowCardinality(String) COMMENT 'Schedule: linear (from begins_at to ends_at) or lump_sum (all at begins_at)',
    amount UInt256 CODEC(ZSTD(1)) COMMENT 'Denom units agreed',
    claimed UInt256 CODEC(ZSTD(1)) COMMENT 'Denom units claimed so far',
    begins_at DateTime('UTC') COMMENT 'Instant at which unlocking begins',
    ends_at Nullable(DateTime('UTC')) COMMENT 'Instant at which all is unlocked; null for a lump sum',
    expires_at Nullable(DateTime('UTC')) COMMENT 'Instant from which nothing can be claimed any more; null is never',
    last_claimed_at Nullable(DateTime('UTC')) COMMENT 'Instant of the last claim; null is none yet',
    admin String COMMENT 'Address that may reclaim what is locked',
    reclaimed_at Nullable(DateTime('UTC')) COMMENT 'Instant at which the admin reclaimed; null is never',
    staked UInt256 CODEC(ZSTD(1)) COMMENT 'Denom units that the beneficiary stakes now',
    held UInt256 CODEC(ZSTD(1)) COMMENT 'Denom units that the beneficiary holds now',
    version UInt64 CODEC(DoubleDelta, ZSTD(1)) COMMENT 'Unix milliseconds of the run that wrote it; of several rows for one arrangement and snapshot the greatest version holds'
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYYYYMM(observed_at)
ORDER BY (address, arrangement, observed_at)
SETTINGS index_granularity = 1024
COMMENT 'Unlock arrangements at each snapshot';
