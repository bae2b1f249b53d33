-- Corrections: what has rewritten history, or waits to.

CREATE TABLE IF NOT EXISTS correction{on_cluster}
(
    began_ns UInt64 COMMENT 'When it began, in unix nanoseconds by the clock of ClickHouse; corrections take turns in this order',
    family LowCardinality(String) COMMENT 'Family whose history is rewritten',
    version UInt64 COMMENT 'Version of the rewrite',
    what LowCardinality(String) COMMENT 'What it does, such as import, backfill or remove',
    command String COMMENT 'The command line that it came from',
    stage LowCardinality(String) COMMENT 'What its writer was doing: waiting for another, staging, putting in place; or that it was done, or stopped',
    rows UInt64 COMMENT 'Rows that it has staged so far',
    expected UInt64 COMMENT 'Rows that it will have; 0 if nobody knows',
    first_at DateTime('UTC') COMMENT 'First second whose data it changes; 1970 until it is being put in place',
    last_at DateTime('UTC') COMMENT 'Last second whose data it changes',
    heard_at DateTime64(3, 'UTC') DEFAULT now64(3) COMMENT 'When its writer wrote the row, which it does every second'
)
ENGINE = {replicated}ReplacingMergeTree({copied, }heard_at)
ORDER BY (began_ns, family)
COMMENT 'Each rewrite of history, as its writer last saw it; read the view corrections';

ALTER TABLE snapshot
    COMMENT COLUMN IF EXISTS kind 'How it came: job (scheduled), backfill, or import; assets where an import of another family has brought descriptions of assets, and no more; correction where observations or runs were taken out or computed again';
