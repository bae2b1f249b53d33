-- Events (ledger dataset loans). The histories loans_originated, liquidations and flash_loans sum some of them.

-- Not partitioned by time: a page of one address must not visit every month. The index keeps at and uuid even if nearly
-- every mark begins another address: an address with many events needs them.

CREATE TABLE IF NOT EXISTS event_version{local}{on_cluster}
(
    address String CODEC(ZSTD(1)) COMMENT 'Address that acted, or that was liquidated, in lower case',
    at DateTime('UTC') CODEC(Delta, ZSTD(1)) COMMENT 'Instant of the event, in whole seconds',
    uuid String CODEC(ZSTD(1)) COMMENT 'Version 5 UUID of the identity of the event',
    id String CODEC(ZSTD(1)) COMMENT 'Id of the event at its source',
    action LowCardinality(String) COMMENT 'Action of the address, such as borrow, deposit_collateral or send',
    leg LowCardinality(String) COMMENT 'Leg of a liquidation: debt (repaid) or collateral (seized). Empty for other actions',
    asset_id LowCardinality(String) COMMENT 'Asset id',
    amount Nullable(UInt256) CODEC(ZSTD(1)) COMMENT 'Amount in denom units of the asset; null for an action that moves nothing',
    price Nullable(Decimal(38, 18)) CODEC(ZSTD(1)) COMMENT 'USD per standard unit of the asset at the time of the event; null where unknown',
    usd Nullable(Decimal(38, 18)) CODEC(ZSTD(1)) COMMENT 'USD value of the amount at the time of the event; null where unknown',
    account_index Nullable(UInt32) CODEC(ZSTD(1)) COMMENT 'Index of the borrow account of a borrow, return, deposit_collateral, withdraw_collateral, liquidate, bond or unbond; else null',
    contract LowCardinality(String) COMMENT 'Address of the contract that carried the action out',
    destination Nullable(String) CODEC(ZSTD(1)) COMMENT 'Recipient of a send. Null for other actions',
    tx_hash String CODEC(ZSTD(1)) COMMENT 'Hash of the transaction. Both legs of a liquidation have the same hash',
    origin LowCardinality(String) DEFAULT 'source' COMMENT 'Origin of the event: source, file or both. An event from a file stays when the source no longer lists it',
    removed Bool COMMENT 'Whether this version removes the event: the source no longer lists it, or lists it at another instant',
    version UInt64 CODEC(Delta, T64, ZSTD(1)) COMMENT 'Version of the commit that wrote the row. The greatest version wins among rows for the same event',
    INDEX uuid_bloom uuid TYPE bloom_filter(0.001) GRANULARITY 1
)
ENGINE = {replicated}ReplacingMergeTree(version)
ORDER BY (address, at, uuid)
SETTINGS index_granularity = 256, primary_key_ratio_of_unique_prefix_values_to_skip_suffix_columns = 1
COMMENT 'Versions of every event of every address, up to the newest snapshot of loans. Read the view events instead; query with FINAL';
