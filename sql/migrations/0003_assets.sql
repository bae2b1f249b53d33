-- Definitions of assets.

CREATE TABLE IF NOT EXISTS asset_definition{on_cluster}
(
    id String COMMENT 'Asset id, <group>;<group_key>',
    defined_at DateTime('UTC') COMMENT 'Instant from which this definition is valid: the first snapshot that has it, or the newest snapshot at the import of a file. 1970 if there was no snapshot',
    name String COMMENT 'Full name',
    symbol LowCardinality(String) COMMENT 'Symbol of a standard unit',
    symbol_denom String COMMENT 'Symbol of a denom unit',
    decimals_denom UInt8 COMMENT 'Decimal places between denom and standard units: 10^this denom make one standard unit',
    decimals_display UInt8 COMMENT 'Decimal places shown in texts',
    kind LowCardinality(String) COMMENT 'Classification: regular, protocol_receipt_token or liquid_staking_token',
    origin_asset Nullable(String) COMMENT 'Id of the asset that a receipt or liquid-staking token represents',
    receipt_asset Nullable(String) COMMENT 'Id of the receipt token of a regular asset',
    listed_until Nullable(DateTime('UTC')) COMMENT 'Instant of the last snapshot in which the source listed the asset; in 2106 while listed, null if never',
    ended_at Nullable(DateTime('UTC')) COMMENT 'Last instant at which the asset has values; null while it has not ended',
    version UInt64 COMMENT 'Version of the commit that wrote this definition. The greatest version wins among definitions of an asset and instant'
)
ENGINE = {replicated}ReplacingMergeTree{copied}
ORDER BY (id, version, defined_at)
COMMENT 'Definitions of assets, a row for each change. Read the views assets and all_assets instead';
