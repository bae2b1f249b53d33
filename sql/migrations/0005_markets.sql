-- Markets as of each snapshot. A snapshot is the rows of one observed_at that the ledger lists under family markets.

CREATE TABLE IF NOT EXISTS market_lend
(
    asset_id LowCardinality(String) COMMENT 'Asset id',
    observed_at DateTime('UTC') CODEC(DoubleDelta, ZSTD(1)) COMMENT 'Instant of the snapshot',
    apr Decimal(38, 18) CODEC(ZSTD(1)) COMMENT 'Yearly rate that lenders earn, without compounding, as a fraction',
    principal UInt256 CODEC(ZSTD(1)) COMMENT 'Amount owed to lenders, in denom units of the asset',
    receipt_supply UInt256 CODEC(ZSTD(1)) COMMENT 'Receipt tokens outstanding, in denom units; principal / receipt_supply is the redemption ratio',
    interest_paid UInt256 CODEC(ZSTD(1)) COMMENT 'Interest that lenders were paid so far, in denom units: what the receipts of the first snapshot had earned, then what each snapshot added by a higher redemption ratio; never falls',
    version UInt64 CODEC(DoubleDelta, ZSTD(1)) COMMENT 'Unix milliseconds of the run that wrote it; of several rows for one market and snapshot the greatest version holds'
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYYYYMM(observed_at)
ORDER BY (asset_id, observed_at)
SETTINGS index_granularity = 1024
COMMENT 'Lend markets at each snapshot';

CREATE TABLE IF NOT EXISTS market_collateral
(
    asset_id LowCardinality(String) COMMENT 'Asset id',
    observed_at DateTime('UTC') CODEC(DoubleDelta, ZSTD(1)) COMMENT 'Instant of the snapshot',
    enabled Bool COMMENT 'Whether the asset counts as collateral',
    allowable_ltv Decimal(38, 18) CODEC(ZSTD(1)) COMMENT 'Ratio of loan to value up to which withdrawals and borrows are allowed, a fraction',
    liquidation_ltv Decimal(38, 18) CODEC(ZSTD(1)) COMMENT 'Ratio of loan to value from which collateral is liquidated, a fraction',
    collateral_cap Nullable(UInt256) CODEC(ZSTD(1)) COMMENT 'Most that may be posted in all, in denom units; null is no limit',
    min_discount Decimal(38, 18) CODEC(ZSTD(1)) COMMENT 'Least discount of a liquidation, a fraction',
    max_discount Decimal(38, 18) CODEC(ZSTD(1)) COMMENT 'Greatest discount of a liquidation, a fraction',
    balance UInt256 CODEC(ZSTD(1)) COMMENT 'Collateral posted, in denom units',
    shares UInt256 CODEC(ZSTD(1)) COMMENT 'Shares of it that accounts hold, in denom units',
    version UInt64 CODEC(DoubleDelta, ZSTD(1)) COMMENT 'Unix milliseconds of the run that wrote it; of several rows for one market and snapshot the greatest version holds'
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYYYYMM(observed_at)
ORDER BY (asset_id, observed_at)
SETTINGS index_granularity = 1024
COMMENT 'Collateral markets at each snapshot';

CREATE TABLE IF NOT EXISTS market_debt
(
    asset_id LowCardinality(String) COMMENT 'Asset id',
    observed_at DateTime('UTC') CODEC(DoubleDelta, ZSTD(1)) COMMENT 'Instant of the snapshot',
    enabled Bool COMMENT 'Whether the asset can be borrowed',
    borrow_cap Nullable(UInt256) CODEC(ZSTD(1)) COMMENT 'Most that may be borrowed in all, in denom units; null is no limit',
    borrow_halt_utilization Decimal(38, 18) CODEC(ZSTD(1)) COMMENT 'Utilization from which no new loan opens, a fraction',
    interest_fee Decimal(38, 18) CODEC(ZSTD(1)) COMMENT 'Part of the interest that the protocol keeps, a fraction',
    apr Decimal(38, 18) CODEC(ZSTD(1)) COMMENT 'Yearly rate that borrowers owe, without compounding, as a fraction',
    balance UInt256 CODEC(ZSTD(1)) COMMENT 'Debt with interest, in denom units',
    shares UInt256 CODEC(ZSTD(1)) COMMENT 'Shares of the debt that accounts owe; one share owes balance / shares denom units',
    time_last_distributed_interest DateTime('UTC') COMMENT 'Instant at which interest was last added to the balance',
    utilization_accumulator Decimal(38, 18) CODEC(ZSTD(1)) COMMENT 'Tracker of the utilization of the asset over time',
    version UInt64 CODEC(DoubleDelta, ZSTD(1)) COMMENT 'Unix milliseconds of the run that wrote it; of several rows for one market and snapshot the greatest version holds'
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYYYYMM(observed_at)
ORDER BY (asset_id, observed_at)
SETTINGS index_granularity = 1024
COMMENT 'Debt markets at each snapshot';

CREATE TABLE IF NOT EXISTS market_config
(
    observed_at DateTime('UTC') CODEC(DoubleDelta, ZSTD(1)) COMMENT 'Instant of the snapshot',
    time_window_nanos UInt64 COMMENT 'Nanoseconds for which an oracle price is valid',
    partial_liquidation_threshold Decimal(38, 18) CODEC(ZSTD(1)) COMMENT 'USD of account value below which a liquidation is complete',
    target_liquidation_health Decimal(38, 18) CODEC(ZSTD(1)) COMMENT 'Health that a liquidation restores, at least 1',
    liquidation_fee Decimal(38, 18) CODEC(ZSTD(1)) COMMENT 'Part of a liquidation that the protocol keeps, a fraction',
    flash_loans_enabled Bool COMMENT 'Whether flash loans are given',
    flash_loan_fee Decimal(38, 18) CODEC(ZSTD(1)) COMMENT 'Fee of a flash loan, a fraction of its amount',
    staking_health_modifier Decimal(38, 18) CODEC(ZSTD(1)) COMMENT 'Most that staking adds to health, a fraction',
    stake_collateral_ratio Decimal(38, 18) CODEC(ZSTD(1)) COMMENT 'Weighted staked protocol token to collateral value at which that much is added, a fraction',
    stake_flash_loan_ratio Decimal(38, 18) CODEC(ZSTD(1)) COMMENT 'Weighted staked protocol token to flash loan value that is required, a fraction',
    dynamic_discount_width Decimal(38, 18) CODEC(ZSTD(1)) COMMENT 'Fall of health below 1 at which the discount is greatest, a fraction',
    hnative LowCardinality(String) COMMENT 'Asset id of an asset that the protocol designates',
    ptoken LowCardinality(String) COMMENT 'Asset id of the protocol token',
    version UInt64 CODEC(DoubleDelta, ZSTD(1)) COMMENT 'Unix milliseconds of the run that wrote it; of several rows for one snapshot the greatest version holds'
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYYYYMM(observed_at)
ORDER BY observed_at
SETTINGS index_granularity = 1024
COMMENT 'Rules of all borrowing at each snapshot';
