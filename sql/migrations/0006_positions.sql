-- Positions of all addresses (ledger dataset positions), written item by item when an item changes.
-- Not partitioned by time: a lookup of one address must not visit every month.

CREATE TABLE IF NOT EXISTS position_change{local}{on_cluster}
(
    address String CODEC(ZSTD(1)) COMMENT 'Address of the user',
    kind LowCardinality(String) COMMENT 'Kind of item: collateral, debt, account (with neither), lend_held, lend_collateralized, wallet, stake, unbonding, unclaimed, claimable_rewards or claimable_unbonding',
    account_index UInt32 CODEC(ZSTD(1)) COMMENT 'Index of the borrow account of a collateral, debt, account or stake item; otherwise 0',
    asset_id String CODEC(ZSTD(1)) COMMENT 'Asset id of a collateral, debt, lend or wallet item; otherwise empty',
    pool UInt32 CODEC(ZSTD(1)) COMMENT 'Index of the staking pool of a stake; otherwise 0',
    item UInt32 CODEC(ZSTD(1)) COMMENT 'Numbers items that are equal in all preceding columns, from 0',
    observed_at DateTime('UTC') CODEC(ZSTD(1)) COMMENT 'Instant of the snapshot that wrote the row: the item was new, had changed or had closed, or an earlier snapshot was added. The row is valid until the next row of the item',
    amount UInt256 CODEC(ZSTD(1)) COMMENT 'Shares of a collateral or debt item, receipt tokens of a lend item, otherwise denom units; 0 when closed',
    cascade Bool CODEC(ZSTD(1)) COMMENT 'Whether a stake moves to the next shorter pool by itself',
    until Nullable(DateTime('UTC')) CODEC(ZSTD(1)) COMMENT 'Instant at which a stake moves, or an unbonding unlocks',
    last_stake_acc Decimal(38, 18) CODEC(ZSTD(1)) COMMENT 'Value of stake_acc up to which a stake has been rewarded',
    allowable_ltv Nullable(Decimal(38, 18)) CODEC(ZSTD(1)) COMMENT 'Loan-to-value ratio of this collateral for withdrawals and borrows, a fraction. Null: as in the market',
    liquidation_ltv Nullable(Decimal(38, 18)) CODEC(ZSTD(1)) COMMENT 'Loan-to-value ratio of this collateral for liquidations, a fraction. Null: as in the market',
    closed Bool CODEC(ZSTD(1)) COMMENT 'Whether the item no longer exists, from observed_at on',
    version UInt64 CODEC(Delta, T64, ZSTD(1)) COMMENT 'Version of the commit that wrote the row. The row counts once snapshot lists that commit'
)
ENGINE = {replicated}ReplacingMergeTree
ORDER BY (address, kind, account_index, asset_id, pool, item, observed_at, version)
SETTINGS index_granularity = 256
COMMENT 'Items of positions, a row for each change of an item. The newest row that counts is the current state, unless it is closed. Read the views position_now and position_at instead';

CREATE TABLE IF NOT EXISTS position_digest{local}{on_cluster}
(
    address String CODEC(ZSTD(1)) COMMENT 'Address of the user',
    observed_at DateTime('UTC') CODEC(ZSTD(1)) COMMENT 'Instant of the snapshot in which the position last changed',
    digest UInt64 CODEC(NONE) COMMENT 'Hash of all items of the position. 0 if it has none. Use it only to detect changes',
    version UInt64 CODEC(ZSTD(1)) COMMENT 'Version of the commit that wrote the row. The digest is valid once that commit is complete'
)
ENGINE = {replicated}ReplacingMergeTree(version)
ORDER BY address
COMMENT 'Hash of the newest stored position of each address, for the positions job';

CREATE TABLE IF NOT EXISTS position_summary{on_cluster}
(
    observed_at DateTime('UTC') CODEC(Delta, T64, ZSTD(1)) COMMENT 'Instant of the snapshot',
    addresses UInt64 COMMENT 'Number of addresses with a position. 0 if the source knows only some addresses',
    borrowers UInt64 COMMENT 'Number of addresses that owe a debt',
    borrower_accounts UInt64 COMMENT 'Number of borrow accounts that owe a debt',
    lenders UInt64 COMMENT 'Number of addresses that lend',
    version UInt64 CODEC(Delta, T64, ZSTD(1)) COMMENT 'Version of the commit that wrote the row. The row counts once snapshot lists that commit'
)
ENGINE = {replicated}ReplacingMergeTree{copied}
PARTITION BY toYYYYMM(observed_at)
ORDER BY (observed_at, version)
COMMENT 'Number of positions at each snapshot';
