-- Positions of all addresses (ledger family positions), written item by item when an item changes.
-- Not partitioned by time: a lookup of one address must not visit every month.

CREATE TABLE IF NOT EXISTS position
(
    address String CODEC(ZSTD(1)) COMMENT 'Address of the user',
    kind LowCardinality(String) COMMENT 'Kind of item: collateral, debt, account (one that has neither), lend_held, lend_collateralized, wallet, stake, unbonding, unclaimed, claimable_rewards or claimable_unbonding',
    account_index UInt32 CODEC(ZSTD(1)) COMMENT 'Index of the borrow account of a collateral, debt, account or stake; else 0',
    asset_id String CODEC(ZSTD(1)) COMMENT 'Asset id of a collateral, debt, lend or wallet item; else empty',
    pool UInt32 CODEC(ZSTD(1)) COMMENT 'Index of the staking pool of a stake; else 0',
    item UInt32 CODEC(ZSTD(1)) COMMENT 'Number among the items that are alike in all columns before, from 0',
    observed_at DateTime('UTC') CODEC(ZSTD(1)) COMMENT 'Instant of the snapshot that found the item new, changed or gone; it holds until the next row of the item',
    amount UInt256 CODEC(ZSTD(1)) COMMENT 'Shares of a collateral or debt market, receipt tokens of a lend item, else denom units; 0 when closed',
    cascade Bool CODEC(ZSTD(1)) COMMENT 'Whether a stake moves on to the next shorter pool by itself',
    until Nullable(DateTime('UTC')) CODEC(ZSTD(1)) COMMENT 'Instant at which a stake moves on, or an unbonding unlocks',
    last_stake_acc Decimal(38, 18) CODEC(ZSTD(1)) COMMENT 'stake_acc up to which a stake was rewarded',
    closed Bool CODEC(ZSTD(1)) COMMENT 'Whether the item is gone since observed_at',
    version UInt64 CODEC(DoubleDelta, ZSTD(1)) COMMENT 'Unix milliseconds of the run that wrote it; of several rows for one item and snapshot the greatest version holds'
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (address, kind, account_index, asset_id, pool, item, observed_at)
SETTINGS index_granularity = 256
COMMENT 'Items of positions, one row each time an item changed; the newest row of an item holds, unless it is closed';

CREATE TABLE IF NOT EXISTS position_digest
(
    address String CODEC(ZSTD(1)) COMMENT 'Address of the user',
    observed_at DateTime('UTC') CODEC(ZSTD(1)) COMMENT 'Instant of the snapshot that found the position changed',
    digest UInt64 CODEC(NONE) COMMENT 'Hash of all items of the position; 0 when it is gone. Only good for telling whether it changed',
    version UInt64 CODEC(ZSTD(1)) COMMENT 'Unix milliseconds of the run that wrote it; the digest holds once that run is complete'
)
ENGINE = ReplacingMergeTree(observed_at)
ORDER BY address
COMMENT 'For the positions job: which state of each address was written last';

CREATE TABLE IF NOT EXISTS position_summary
(
    observed_at DateTime('UTC') CODEC(DoubleDelta, ZSTD(1)) COMMENT 'Instant of the snapshot',
    addresses UInt64 COMMENT 'Addresses that have a position',
    borrowers UInt64 COMMENT 'Addresses that owe a debt',
    borrower_accounts UInt64 COMMENT 'Borrow accounts that owe a debt',
    lenders UInt64 COMMENT 'Addresses that lend',
    version UInt64 CODEC(DoubleDelta, ZSTD(1)) COMMENT 'Unix milliseconds of the run that wrote it; of several rows for one snapshot the greatest version holds'
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYYYYMM(observed_at)
ORDER BY observed_at
COMMENT 'How many positions there are at each snapshot';
