-- Markets as of each snapshot (ledger dataset markets). Rows of a snapshot have its instant and its commit's version.

CREATE TABLE IF NOT EXISTS market_lend{on_cluster}
(
    observed_at DateTime('UTC') CODEC(Delta, T64, ZSTD(1)) COMMENT 'Instant of the snapshot',
    asset_id LowCardinality(String) COMMENT 'Asset id',
    apr Decimal(38, 18) CODEC(ZSTD(1)) COMMENT 'Yearly rate that lenders earn, without compounding, as a fraction',
    principal UInt256 CODEC(ZSTD(1)) COMMENT 'Amount owed to lenders, in denom units of the asset',
    receipt_supply UInt256 CODEC(ZSTD(1)) COMMENT 'Receipt tokens outstanding, in denom units; principal / receipt_supply, both in standard units, is the redemption ratio',
    interest_paid Nullable(UInt256) CODEC(ZSTD(1)) COMMENT 'Interest paid to lenders so far, as the source reports it, in denom units. Null if it is estimated',
    supply_cap Nullable(UInt256) CODEC(ZSTD(1)) COMMENT 'Largest total that may be lent, in denom units. Null if there is no limit, or the source does not say',
    paused Nullable(Bool) COMMENT 'Whether the market is paused: nobody can act in it. Null if the source does not say',
    frozen Nullable(Bool) COMMENT 'Whether the market is frozen: funds can only be withdrawn or repaid. Null if the source does not say',
    version UInt64 CODEC(Delta, T64, ZSTD(1)) COMMENT 'Version of the commit that wrote the row. The row counts once snapshot lists that commit'
)
ENGINE = {replicated}ReplacingMergeTree{copied}
PARTITION BY toYYYYMM(observed_at)
ORDER BY (observed_at, asset_id, version)
SETTINGS index_granularity = 1024
COMMENT 'Lend markets at each snapshot';

CREATE TABLE IF NOT EXISTS market_collateral{on_cluster}
(
    observed_at DateTime('UTC') CODEC(Delta, T64, ZSTD(1)) COMMENT 'Instant of the snapshot',
    asset_id LowCardinality(String) COMMENT 'Asset id',
    enabled Bool COMMENT 'Whether the asset counts as collateral',
    allowable_ltv Decimal(38, 18) CODEC(ZSTD(1)) COMMENT 'Loan-to-value ratio up to which withdrawals and borrows are allowed, a fraction',
    liquidation_ltv Decimal(38, 18) CODEC(ZSTD(1)) COMMENT 'Loan-to-value ratio from which collateral is liquidated, a fraction',
    collateral_cap Nullable(UInt256) CODEC(ZSTD(1)) COMMENT 'Largest total that may be posted, in denom units. Null if there is no limit',
    min_discount Decimal(38, 18) CODEC(ZSTD(1)) COMMENT 'Smallest discount of a liquidation, a fraction',
    max_discount Decimal(38, 18) CODEC(ZSTD(1)) COMMENT 'Largest discount of a liquidation, a fraction',
    balance UInt256 CODEC(ZSTD(1)) COMMENT 'Collateral posted, in denom units',
    shares UInt256 CODEC(ZSTD(1)) COMMENT 'Shares of the balance that accounts hold, in denom units',
    paused Nullable(Bool) COMMENT 'Whether the market is paused: nobody can act in it. Null if the source does not say',
    frozen Nullable(Bool) COMMENT 'Whether the market is frozen: funds can only be withdrawn or repaid. Null if the source does not say',
    version UInt64 CODEC(Delta, T64, ZSTD(1)) COMMENT 'Version of the commit that wrote the row. The row counts once snapshot lists that commit'
)
ENGINE = {replicated}ReplacingMergeTree{copied}
PARTITION BY toYYYYMM(observed_at)
ORDER BY (observed_at, asset_id, version)
SETTINGS index_granularity = 1024
COMMENT 'Collateral markets at each snapshot';

CREATE TABLE IF NOT EXISTS market_debt{on_cluster}
(
    observed_at DateTime('UTC') CODEC(Delta, T64, ZSTD(1)) COMMENT 'Instant of the snapshot',
    asset_id LowCardinality(String) COMMENT 'Asset id',
    enabled Bool COMMENT 'Whether the asset can be borrowed',
    borrow_cap Nullable(UInt256) CODEC(ZSTD(1)) COMMENT 'Largest total that may be borrowed, in denom units. Null if there is no limit',
    borrow_halt_utilization Decimal(38, 18) CODEC(ZSTD(1)) COMMENT 'Highest utilization at which new loans can be opened, a fraction',
    interest_fee Decimal(38, 18) CODEC(ZSTD(1)) COMMENT 'Part of the interest that the protocol keeps, a fraction',
    apr Decimal(38, 18) CODEC(ZSTD(1)) COMMENT 'Yearly rate that borrowers owe, without compounding, as a fraction',
    balance UInt256 CODEC(ZSTD(1)) COMMENT 'Debt including interest, in denom units',
    shares UInt256 CODEC(ZSTD(1)) COMMENT 'Shares of the debt that accounts owe; each is a debt of balance / shares denom units',
    time_last_distributed_interest DateTime('UTC') COMMENT 'Instant at which interest was last added to the balance',
    utilization_accumulator Decimal(38, 18) CODEC(ZSTD(1)) COMMENT 'Tracker of the utilization of the asset over time',
    paused Nullable(Bool) COMMENT 'Whether the market is paused: nobody can act in it. Null if the source does not say',
    frozen Nullable(Bool) COMMENT 'Whether the market is frozen: funds can only be withdrawn or repaid. Null if the source does not say',
    version UInt64 CODEC(Delta, T64, ZSTD(1)) COMMENT 'Version of the commit that wrote the row. The row counts once snapshot lists that commit'
)
ENGINE = {replicated}ReplacingMergeTree{copied}
PARTITION BY toYYYYMM(observed_at)
ORDER BY (observed_at, asset_id, version)
SETTINGS index_granularity = 1024
COMMENT 'Debt markets at each snapshot';

CREATE TABLE IF NOT EXISTS market_config{on_cluster}
(
    observed_at DateTime('UTC') CODEC(Delta, T64, ZSTD(1)) COMMENT 'Instant of the snapshot',
    time_window_nanos UInt64 COMMENT 'Nanoseconds for which an oracle price is valid',
    partial_liquidation_threshold Decimal(38, 18) CODEC(ZSTD(1)) COMMENT 'Account value in USD below which a liquidation is complete',
    target_liquidation_health Decimal(38, 18) CODEC(ZSTD(1)) COMMENT 'Health that a liquidation restores, at least 1',
    liquidation_fee Decimal(38, 18) CODEC(ZSTD(1)) COMMENT 'Part of a liquidation that the protocol keeps, a fraction',
    flash_loans_enabled Bool COMMENT 'Whether flash loans are given',
    flash_loan_fee Decimal(38, 18) CODEC(ZSTD(1)) COMMENT 'Fee of a flash loan, a fraction of its amount',
    staking_health_modifier Decimal(38, 18) CODEC(ZSTD(1)) COMMENT 'Largest increase of health from staking, a fraction',
    stake_collateral_ratio Decimal(38, 18) CODEC(ZSTD(1)) COMMENT 'Ratio of weighted staked protocol tokens to collateral value at which that increase is reached, a fraction',
    stake_flash_loan_ratio Decimal(38, 18) CODEC(ZSTD(1)) COMMENT 'Required ratio of weighted staked protocol tokens to flash loan value, a fraction',
    dynamic_discount_width Decimal(38, 18) CODEC(ZSTD(1)) COMMENT 'Distance of health below 1 at which the discount is largest, a fraction',
    hnative LowCardinality(String) COMMENT 'Asset id of an asset that the protocol designates',
    ptoken LowCardinality(String) COMMENT 'Asset id of the protocol token',
    version UInt64 CODEC(Delta, T64, ZSTD(1)) COMMENT 'Version of the commit that wrote the row. The row counts once snapshot lists that commit'
)
ENGINE = {replicated}ReplacingMergeTree{copied}
PARTITION BY toYYYYMM(observed_at)
ORDER BY (observed_at, version)
SETTINGS index_granularity = 1024
COMMENT 'Configuration of the protocol at each snapshot';

CREATE TABLE IF NOT EXISTS market_price{on_cluster}
(
    observed_at DateTime('UTC') CODEC(Delta, T64, ZSTD(1)) COMMENT 'Instant of the snapshot',
    asset_id LowCardinality(String) COMMENT 'Asset id',
    price Decimal(38, 18) CODEC(GCD, ZSTD(1)) COMMENT 'USD per standard unit: the last oracle price at the snapshot',
    version UInt64 CODEC(Delta, T64, ZSTD(1)) COMMENT 'Version of the commit that wrote the row. The row counts once snapshot lists that commit'
)
ENGINE = {replicated}ReplacingMergeTree{copied}
PARTITION BY toYYYYMM(observed_at)
ORDER BY (observed_at, asset_id, version)
SETTINGS index_granularity = 1024
COMMENT 'Oracle prices of assets with a market at each snapshot of markets. Prices of receipt tokens without an oracle price follow from them';
