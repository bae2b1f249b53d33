-- Values that may be wrong.

CREATE TABLE IF NOT EXISTS doubt{on_cluster}
(
    history LowCardinality(String) COMMENT 'Name of the history, such as price or deposits_usd',
    asset_id LowCardinality(String) COMMENT 'Asset id; empty for the total over all assets',
    observed_at DateTime('UTC') COMMENT 'Instant of the value',
    what LowCardinality(String) COMMENT 'zero (a price of 0), jump (of a price), or fall (of a total, by more than half)',
    value Decimal(38, 18) COMMENT 'The value, in USD',
    before_at Nullable(DateTime('UTC')) COMMENT 'Instant of the value before; null if none is known',
    before Nullable(Decimal(38, 18)) COMMENT 'The value before, in USD; null if none is known',
    version UInt64 COMMENT 'Version of the run that wrote the row; of several rows for one value, the greatest version wins'
)
ENGINE = {replicated}ReplacingMergeTree({copied, }version)
ORDER BY (history, asset_id, observed_at)
COMMENT 'Each value that was in doubt when it was written; read the view doubts, which leaves out what was corrected since';
