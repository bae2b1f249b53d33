-- Definitions of assets.

CREATE TABLE IF NOT EXISTS asset_definition{on_cluster}
(
    id String COMMENT 'Asset id, <group>;<group_key>',
    defined_at DateTime('UTC') COMMENT 'Instant from which on this definition counts: of the first snapshot that has it, or of the newest one when a file stated it; 1970 without one',
    name String COMMENT 'Full name',
    symbol LowCardinality(String) COMMENT 'Symbol of a standard unit',
    symbol_denom String COMMENT 'Symbol of a denom unit',
    decimals_denom UInt8 COMMENT 'Decimal places between denom and standard units: 10^this denom make one standard unit',
    decimals_display UInt8 COMMENT 'Decimal places shown in texts',
    kind LowCardinality(String) COMMENT 'Classification: regular, protocol_receipt_token or liquid_staking_token',
    origin_asset Nullable(String) COMMENT 'Id of the asset that a receipt or liquid-staking token represents',
    receipt_asset Nullable(String) COMMENT 'Id of the receipt token of a regular asset',
    listed_until Nullable(DateTime('UTC')) COMMENT 'Instant of the last snapshot in which its source listed it; in 2106 while it does; null if none did',
    ended_at Nullable(DateTime('UTC')) COMMENT 'Instant after which the asset has no values any more; null while it goes on',
    version UInt64 COMMENT 'Version of the run that wrote this definition; of those that count from the same instant, the greatest version wins'
)
ENGINE = {replicated}ReplacingMergeTree{copied}
ORDER BY (id, version, defined_at)
COMMENT 'Definitions of assets, one row for each change of a definition; read the views assets and all_assets';
