-- What caches need: a count that every completed run changes, and a notice before history is rewritten.

ALTER TABLE snapshot ADD INDEX IF NOT EXISTS version_range version TYPE minmax GRANULARITY 1;

ALTER TABLE snapshot_head ADD COLUMN IF NOT EXISTS runs SimpleAggregateFunction(sum, UInt64) COMMENT 'Runs completed since this column was added; a repeated insert counts again. It only tells that something changed';

ALTER TABLE snapshot_head_view MODIFY QUERY
SELECT
    family,
    max(s.at) AS at,
    max(s.last_observed_at) AS last_observed_at,
    max(s.version) AS version,
    toUInt64(count()) AS runs
FROM snapshot AS s
GROUP BY family;

CREATE TABLE IF NOT EXISTS publication
(
    family LowCardinality(String) COMMENT 'Family of data',
    version UInt64 COMMENT 'Version of the run that rewrites it',
    announced_at SimpleAggregateFunction(max, DateTime('UTC')) DEFAULT now() COMMENT 'Instant at which the run last said that it is at it; after a minute of silence it is taken for dead',
    finished SimpleAggregateFunction(max, UInt8) COMMENT '1 once the run stands in the ledger'
)
ENGINE = AggregatingMergeTree
ORDER BY (family, version)
COMMENT 'Runs that rewrite history which readers already see; until one has finished readers show what they know, or wait';
