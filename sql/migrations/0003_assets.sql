-- Definitions of assets.

CREATE TABLE IF NOT EXISTS asset{on_cluster}
(
    id String COMMENT 'Asset id, <group>;<group_key>',
    version UInt64 COMMENT 'Version of the run that wrote this definition; the greatest version wins',
    name String COMMENT 'Full name',
    symbol LowCardinality(String) COMMENT 'Symbol of a standard unit',
    symbol_denom String COMMENT 'Symbol of a denom unit',
    decimals_denom UInt8 COMMENT 'Decimal places between denom and standard units: 10^this denom make one standard unit',
    decimals_display UInt8 COMMENT 'Decimal places shown in texts',
    kind LowCardinality(String) COMMENT 'Classification: regular, protocol_receipt_token or liquid_staking_token',
    origin_asset Nullable(String) COMMENT 'Id of the asset that a receipt or liquid-staking token represents',
    receipt_asset Nullable(String) COMMENT 'Id of the receipt token of a regular asset'
)
ENGINE = {replicated}ReplacingMergeTree{copied}
ORDER BY (id, version)
COMMENT 'Definitions of assets, one row for each change of a definition';
