-- Runs that add to the end of a history are staged and announced, too: so one that dies half-way is completed by others,
-- or leaves nothing. Readers need not know of them, so they have a table of their own, which forgets them.

CREATE TABLE IF NOT EXISTS append_run
(
    family LowCardinality(String) COMMENT 'Family of data',
    version UInt64 COMMENT 'Version of the run that adds to it',
    announced_at SimpleAggregateFunction(max, DateTime('UTC')) DEFAULT now() COMMENT 'Instant of the writer''s last heartbeat; after three seconds without one others complete the run',
    finished SimpleAggregateFunction(max, UInt8) COMMENT '1 once the run stands in the ledger'
)
ENGINE = AggregatingMergeTree
ORDER BY (family, version)
TTL announced_at + INTERVAL 1 DAY
COMMENT 'Runs of the last day that add snapshots to the end of a family; while one is unfinished, the next ones wait';
