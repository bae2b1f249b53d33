-- The snapshot ledger: data of a run becomes visible through its row here, written last.

CREATE TABLE IF NOT EXISTS snapshot
(
    family LowCardinality(String) COMMENT 'Family of data the run wrote, such as prices',
    at DateTime('UTC') COMMENT 'Instant of the snapshot; of an import, the newest observation it brought',
    kind LowCardinality(String) COMMENT 'How it came: job (scheduled), backfill, or import',
    first_observed_at DateTime('UTC') COMMENT 'Oldest observation that the run wrote',
    last_observed_at DateTime('UTC') COMMENT 'Newest observation that the run wrote',
    rows UInt64 COMMENT 'Observations written',
    source String COMMENT 'Where they came from: the source spec, or the names of the imported files',
    version UInt64 COMMENT 'Unix milliseconds at which the run began to write (below 2^42); a later run has a greater one'
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYear(at)
ORDER BY (family, at, kind)
COMMENT 'Ledger of completed runs: rows of other tables count once their run stands here';

CREATE TABLE IF NOT EXISTS snapshot_head
(
    family LowCardinality(String) COMMENT 'Family of data',
    at SimpleAggregateFunction(max, DateTime('UTC')) COMMENT 'Newest snapshot instant of the family',
    last_observed_at SimpleAggregateFunction(max, DateTime('UTC')) COMMENT 'Newest observation of the family',
    version SimpleAggregateFunction(max, UInt64) COMMENT 'Version of the last run that wrote to the family'
)
ENGINE = AggregatingMergeTree
ORDER BY family
COMMENT 'Newest snapshot of each family; read with max() and GROUP BY family';

CREATE MATERIALIZED VIEW IF NOT EXISTS snapshot_head_view TO snapshot_head
AS SELECT family, max(s.at) AS at, max(s.last_observed_at) AS last_observed_at, max(s.version) AS version
FROM snapshot AS s
GROUP BY family
COMMENT 'Feeds snapshot_head from each insert into snapshot; max() absorbs repeated inserts';
