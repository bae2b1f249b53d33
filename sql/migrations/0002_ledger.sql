-- The ledger of complete commits, and operations that are under way.

CREATE TABLE IF NOT EXISTS snapshot{on_cluster}
(
    dataset LowCardinality(String) COMMENT 'Dataset of the commit, such as prices',
    at DateTime('UTC') COMMENT 'Instant of the snapshot. For an import, its newest observation, or 1970 if it added values but no state',
    kind LowCardinality(String) COMMENT 'Kind of commit: job (scheduled), backfill, import, correction (removed or recomputed observations or commits), or assets (only definitions of assets, from an import of another dataset)',
    first_observed_at DateTime('UTC') COMMENT 'Instant of the oldest observation of the commit',
    last_observed_at DateTime('UTC') COMMENT 'Instant of the newest observation of the commit',
    rows UInt64 COMMENT 'Number of rows written',
    source String COMMENT 'Origin of the rows: the source of the jobs, or the names of the imported files',
    simulated Bool COMMENT 'Whether the rows are simulated',
    import_id UInt64 COMMENT 'The version of an import or a correction. 0 for jobs and backfills',
    reported_histories Array(LowCardinality(String)) COMMENT 'Histories of loans whose values the source reported for the snapshot. The others are sums of events',
    complete_until DateTime('UTC') COMMENT 'Instant up to which the source had all events of loans. 1970 if it did not say',
    tables Array(LowCardinality(String)) COMMENT 'Tables of snapshots in which the commit has rows',
    table_rows Array(UInt64) COMMENT 'Number of rows of the commit in each of these tables',
    version UInt64 COMMENT 'Start of the commit, in unix nanoseconds by the clock of ClickHouse. Later commits have greater versions',
    INDEX version_range version TYPE minmax GRANULARITY 1
)
ENGINE = {replicated}ReplacingMergeTree({copied, }version)
PARTITION BY toYear(at)
ORDER BY (dataset, at, kind, import_id)
-- A lookup of a position needs a few instants of years, and should not read thousands of rows for each.
SETTINGS index_granularity = 256
COMMENT 'Ledger of complete commits. Rows of snapshot tables count only if this table lists their observed_at (as at) and version';

CREATE TABLE IF NOT EXISTS snapshot_head{on_cluster}
(
    dataset LowCardinality(String) COMMENT 'Dataset',
    at SimpleAggregateFunction(max, DateTime('UTC')) COMMENT 'Instant of the newest snapshot of the dataset',
    last_observed_at SimpleAggregateFunction(max, DateTime('UTC')) COMMENT 'Instant of the newest observation of the dataset',
    version SimpleAggregateFunction(max, UInt64) COMMENT 'Greatest version of the commits of the dataset',
    runs SimpleAggregateFunction(sum, UInt64) COMMENT 'Number of complete commits. A repeated insert counts twice, so use it only to detect changes',
    sources SimpleAggregateFunction(groupUniqArrayArray, Array(Tuple(source String, simulated Bool))) COMMENT 'Sources of all commits of the dataset, and whether each is simulated. The empty string stands for imported files'
)
ENGINE = {replicated}AggregatingMergeTree{copied}
ORDER BY dataset
COMMENT 'Summary of the ledger by dataset; query with FINAL';

CREATE MATERIALIZED VIEW IF NOT EXISTS snapshot_head_view{on_cluster} TO snapshot_head
(
    dataset LowCardinality(String) COMMENT 'Dataset',
    at DateTime('UTC') COMMENT 'Newest instant of the inserted commits',
    last_observed_at DateTime('UTC') COMMENT 'Instant of the newest observation of these commits',
    version UInt64 COMMENT 'Greatest version of these commits',
    runs UInt64 COMMENT 'Number of these commits',
    sources Array(Tuple(source String, simulated Bool)) COMMENT 'Sources of these commits, and whether each is simulated'
)
AS SELECT
    dataset,
    max(s.at) AS at,
    max(s.last_observed_at) AS last_observed_at,
    max(s.version) AS version,
    toUInt64(count()) AS runs,
    groupUniqArray((if(s.kind = 'import', '', s.source), s.simulated)) AS sources
FROM snapshot AS s
GROUP BY dataset
COMMENT 'Feeds snapshot_head from each insert into snapshot';

CREATE TABLE IF NOT EXISTS owner{on_cluster}
(
    name String COMMENT 'Owner of the data: a simulated source, or "not simulated" for all others',
    source String COMMENT 'Source of the jobs. Another source is refused unless it replaces this one. Empty before the first snapshot',
    claimed_at DateTime64(6, 'UTC') DEFAULT now64(6) COMMENT 'Instant at which the owner claimed the store. The newest row counts'
)
ENGINE = {replicated}ReplacingMergeTree{copied}
ORDER BY name
-- Claims share a deduplication token, so ClickHouse keeps the first of simultaneous claims.
SETTINGS non_replicated_deduplication_window = 100
COMMENT 'Owner of the store, which decides which data may be added. The first commit writes it';

CREATE TABLE IF NOT EXISTS rewrite{on_cluster}
(
    dataset LowCardinality(String) COMMENT 'Dataset whose history is rewritten',
    version UInt64 COMMENT 'Version of the rewrite',
    operation SimpleAggregateFunction(max, String) COMMENT 'What the rewrite does, such as import, backfill or remove. Empty if a commit added late observations',
    command SimpleAggregateFunction(max, String) COMMENT 'Command line of the writer',
    rows SimpleAggregateFunction(max, UInt64) COMMENT 'Number of rows that it adds or removes',
    first_at SimpleAggregateFunction(max, DateTime('UTC')) COMMENT 'First second whose data it changes. 1970 if its data has no time',
    last_at SimpleAggregateFunction(max, DateTime('UTC')) COMMENT 'Last second whose data it changes',
    announced_at SimpleAggregateFunction(max, DateTime('UTC')) DEFAULT now() COMMENT 'Instant of the announcement. Once the rewrite has finished, the instant at which it finished',
    finished SimpleAggregateFunction(max, UInt8) COMMENT '1 once the rewrite is in place'
)
ENGINE = {replicated}AggregatingMergeTree{copied}
ORDER BY (dataset, version)
COMMENT 'Announced rewrites of history. Until a rewrite has finished, readers answer from memory or wait. Read the view corrections instead';

CREATE TABLE IF NOT EXISTS write_lock{on_cluster}
(
    holder String COMMENT 'Random token of an attempt to take the lock',
    operation SimpleAggregateFunction(any, String) COMMENT 'What the holder does, such as import, backfill or remove',
    dataset SimpleAggregateFunction(any, String) COMMENT 'Dataset whose history it changes',
    command SimpleAggregateFunction(any, String) COMMENT 'Command line of the writer',
    requested_at SimpleAggregateFunction(min, DateTime64(3, 'UTC')) DEFAULT now64(3) COMMENT 'Instant of the request',
    heartbeat_at SimpleAggregateFunction(max, DateTime64(3, 'UTC')) DEFAULT now64(3) COMMENT 'Instant of the last heartbeat. 15 seconds later the lock is free',
    released SimpleAggregateFunction(max, UInt8) COMMENT '1 once the holder has released the lock, or withdrawn its request'
)
ENGINE = {replicated}AggregatingMergeTree{copied}
ORDER BY holder
TTL toDateTime(heartbeat_at) + INTERVAL 1 DAY
COMMENT 'Holder of the lock for corrections of history, and requests of the last day; query with FINAL';

CREATE TABLE IF NOT EXISTS job_run{on_cluster}
(
    dataset LowCardinality(String) COMMENT 'Dataset',
    scheduler String COMMENT 'Host and process id of the scheduler',
    reported_at DateTime('UTC') DEFAULT now() COMMENT 'Instant of the report. The newest report of a dataset and scheduler counts',
    interval_seconds UInt32 COMMENT 'Seconds between snapshots',
    next_at Nullable(DateTime('UTC')) COMMENT 'Instant of the next snapshot. Null once the scheduler has stopped',
    failed_at Nullable(DateTime('UTC')) COMMENT 'Instant of the last snapshot that failed. Null if none did',
    error String COMMENT 'Why that snapshot failed. Empty if none did',
    ran_at Nullable(DateTime('UTC')) COMMENT 'Instant of the last snapshot that was attempted. Null before the first',
    outcome LowCardinality(String) COMMENT 'Outcome of that attempt: done, already_done, superseded or failed. Empty before the first',
    duration_ms Nullable(UInt32) COMMENT 'Duration of that attempt in milliseconds, including retries. Null before the first'
)
ENGINE = {replicated}ReplacingMergeTree({copied, }reported_at)
ORDER BY (dataset, scheduler)
TTL reported_at + INTERVAL 7 DAY
COMMENT 'Reports of the schedulers of the last week: next snapshot, last attempt and last failure; query with FINAL';

CREATE TABLE IF NOT EXISTS loss{on_cluster}
(
    dataset LowCardinality(String) COMMENT 'Dataset whose answers lack rows. Empty for losses that no answer needs',
    losses Array(Tuple(name String, first_at DateTime('UTC'), last_at DateTime('UTC'), part String)) COMMENT 'Histories and tables that lost rows, the first and last second of the answers that this changes, and the folder of the broken part if rows cannot be counted',
    version UInt64 COMMENT 'Time of the check, in unix nanoseconds by the clock of ClickHouse. The greatest version wins'
)
ENGINE = {replicated}ReplacingMergeTree({copied, }version)
ORDER BY dataset
COMMENT 'Rows that the store has lost, as found by schedulers; query with FINAL';
