-- What schedulers tell operators: the ledger knows of completed runs only.

CREATE TABLE IF NOT EXISTS job_run
(
    family LowCardinality(String) COMMENT 'Family of data',
    scheduler String COMMENT 'Host and process id of the scheduler',
    heard_at DateTime('UTC') DEFAULT now() COMMENT 'Instant at which the scheduler wrote the row; of several rows for one family and scheduler the newest holds',
    every UInt32 COMMENT 'Seconds between snapshots',
    next_at Nullable(DateTime('UTC')) COMMENT 'Instant of the next run; null once the scheduler has stopped',
    failed_at Nullable(DateTime('UTC')) COMMENT 'Instant of the last snapshot that could not be taken, if there is one',
    error String COMMENT 'Why it could not be taken; else empty'
)
ENGINE = ReplacingMergeTree(heard_at)
ORDER BY (family, scheduler)
TTL heard_at + INTERVAL 7 DAY
COMMENT 'Schedulers of the last week: what each runs next, and its last failure; query with FINAL';
