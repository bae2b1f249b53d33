-- The ledger: which runs are complete, and what is going on in the store.

CREATE TABLE IF NOT EXISTS snapshot{on_cluster}
(
    family LowCardinality(String) COMMENT 'Family of data that the run wrote, such as prices',
    at DateTime('UTC') COMMENT 'Instant of the snapshot; for an import, its newest observation, or 1970 if it brought values but no state',
    kind LowCardinality(String) COMMENT 'How it came: job (scheduled), backfill, or import; assets where an import of another family has brought descriptions of assets, and no more; correction where observations or runs were taken out or computed again',
    first_observed_at DateTime('UTC') COMMENT 'Oldest observation that the run wrote',
    last_observed_at DateTime('UTC') COMMENT 'Newest observation that the run wrote',
    rows UInt64 COMMENT 'Number of rows written',
    source String COMMENT 'Where the rows came from: the source of the jobs, or the names of the imported files',
    simulated Bool COMMENT 'Whether the source made the rows up',
    files UInt64 COMMENT 'Of an import, a number that stands for the paths of its files; else 0',
    stated Array(LowCardinality(String)) COMMENT 'Of loans, the histories whose values at the snapshot the source stated; the others are sums of events',
    complete_until DateTime('UTC') COMMENT 'Of loans, up to when the source said that its events were complete; 1970 if it did not say',
    tables Array(LowCardinality(String)) COMMENT 'Tables of snapshots with rows of the run; empty if there are none',
    table_rows Array(UInt64) COMMENT 'Number of its rows in each of these tables',
    version UInt64 COMMENT 'Unix nanoseconds, by the clock of ClickHouse, at which the run began; later runs have greater ones',
    INDEX version_range version TYPE minmax GRANULARITY 1
)
ENGINE = {replicated}ReplacingMergeTree({copied, }version)
PARTITION BY toYear(at)
ORDER BY (family, at, kind, files)
-- A lookup of a position asks about a few instants of years; it should not read thousands of rows for each.
SETTINGS index_granularity = 256
COMMENT 'Ledger of completed runs. A row of a table with observed_at and version counts once a run with both is listed here';

CREATE TABLE IF NOT EXISTS snapshot_head{on_cluster}
(
    family LowCardinality(String) COMMENT 'Family of data',
    at SimpleAggregateFunction(max, DateTime('UTC')) COMMENT 'Instant of the newest snapshot of the family',
    last_observed_at SimpleAggregateFunction(max, DateTime('UTC')) COMMENT 'Newest observation of the family',
    version SimpleAggregateFunction(max, UInt64) COMMENT 'Greatest version of the runs that wrote to the family',
    runs SimpleAggregateFunction(sum, UInt64) COMMENT 'Number of completed runs. A repeated insert counts twice, so use it only to see that something has changed',
    sources SimpleAggregateFunction(groupUniqArrayArray, Array(Tuple(source String, simulated Bool))) COMMENT 'Sources of all runs of the family, and whether each is simulated. The empty text stands for imported files'
)
ENGINE = {replicated}AggregatingMergeTree{copied}
ORDER BY family
COMMENT 'What the ledger comes to for each family; query with FINAL';

CREATE MATERIALIZED VIEW IF NOT EXISTS snapshot_head_view{on_cluster} TO snapshot_head
(
    family LowCardinality(String) COMMENT 'Family of data',
    at DateTime('UTC') COMMENT 'Newest instant of the runs that are inserted together',
    last_observed_at DateTime('UTC') COMMENT 'Newest observation of these runs',
    version UInt64 COMMENT 'Greatest version of these runs',
    runs UInt64 COMMENT 'Number of these runs',
    sources Array(Tuple(source String, simulated Bool)) COMMENT 'Sources of these runs, and whether each is simulated'
)
AS SELECT
    family,
    max(s.at) AS at,
    max(s.last_observed_at) AS last_observed_at,
    max(s.version) AS version,
    toUInt64(count()) AS runs,
    groupUniqArray((if(s.kind = 'import', '', s.source), s.simulated)) AS sources
FROM snapshot AS s
GROUP BY family
COMMENT 'Feeds snapshot_head from each insert into snapshot';

CREATE TABLE IF NOT EXISTS claim{on_cluster}
(
    side String COMMENT 'Whose data the store takes: the spec of a simulated source, or "not simulated" for all others',
    source String COMMENT 'Source of the jobs: another is refused unless it replaces this one. Empty before the first snapshot',
    claimed_at DateTime64(6, 'UTC') DEFAULT now64(6) COMMENT 'Instant of the claim; of several rows the newest holds'
)
ENGINE = {replicated}ReplacingMergeTree{copied}
ORDER BY side
-- Claims have one token, so ClickHouse takes the first of several that come at the same time.
SETTINGS non_replicated_deduplication_window = 100
COMMENT 'Which data may be added to this store; written by the first run';

CREATE TABLE IF NOT EXISTS rewrite{on_cluster}
(
    family LowCardinality(String) COMMENT 'Family whose history is rewritten',
    version UInt64 COMMENT 'Version of the run that rewrites it',
    what SimpleAggregateFunction(max, String) COMMENT 'What it does, such as import, backfill or remove; empty where a run brought observations late',
    command SimpleAggregateFunction(max, String) COMMENT 'The command line that it came from',
    rows SimpleAggregateFunction(max, UInt64) COMMENT 'Rows that it brings or takes out',
    first_at SimpleAggregateFunction(max, DateTime('UTC')) COMMENT 'First second whose data it changes; 1970 if it changes no data of a time',
    last_at SimpleAggregateFunction(max, DateTime('UTC')) COMMENT 'Last second whose data it changes',
    announced_at SimpleAggregateFunction(max, DateTime('UTC')) DEFAULT now() COMMENT 'When it was announced; once it has finished, when that was',
    finished SimpleAggregateFunction(max, UInt8) COMMENT '1 once the run is listed in snapshot'
)
ENGINE = {replicated}AggregatingMergeTree{copied}
ORDER BY (family, version)
COMMENT 'Rewrites of history that readers already see. Until a rewrite has finished, readers answer from memory, or wait; read the view corrections';

CREATE TABLE IF NOT EXISTS write_lock{on_cluster}
(
    holder String COMMENT 'A random name of each attempt to take the lock',
    what SimpleAggregateFunction(any, String) COMMENT 'What the holder does, such as import, backfill or remove',
    family SimpleAggregateFunction(any, String) COMMENT 'Family whose history it changes',
    command SimpleAggregateFunction(any, String) COMMENT 'The command line that it came from',
    taken_at SimpleAggregateFunction(min, DateTime64(3, 'UTC')) DEFAULT now64(3) COMMENT 'When it asked for the lock',
    heard_at SimpleAggregateFunction(max, DateTime64(3, 'UTC')) DEFAULT now64(3) COMMENT 'Time of its last heartbeat; after 15 seconds of silence the lock is free',
    released SimpleAggregateFunction(max, UInt8) COMMENT '1 once it has released the lock, or has not got it'
)
ENGINE = {replicated}AggregatingMergeTree{copied}
ORDER BY holder
TTL toDateTime(heard_at) + INTERVAL 1 DAY
COMMENT 'Who corrects history, and who has asked to in the last day; query with FINAL';

CREATE TABLE IF NOT EXISTS job_run{on_cluster}
(
    family LowCardinality(String) COMMENT 'Family of data',
    scheduler String COMMENT 'Host and process id of the scheduler',
    heard_at DateTime('UTC') DEFAULT now() COMMENT 'Instant at which the scheduler wrote the row; of several rows for one family and scheduler the newest holds',
    every UInt32 COMMENT 'Seconds between snapshots',
    next_at Nullable(DateTime('UTC')) COMMENT 'Instant of the next run; null once the scheduler has stopped',
    failed_at Nullable(DateTime('UTC')) COMMENT 'Instant of the last snapshot that could not be taken, if there is one',
    error String COMMENT 'Why it could not be taken; else empty',
    ran_at Nullable(DateTime('UTC')) COMMENT 'Instant of the snapshot that the last run was for; null before the first one',
    outcome LowCardinality(String) COMMENT 'What came of that run: done, already_done, superseded or failed; empty before the first one',
    took_ms Nullable(UInt32) COMMENT 'Milliseconds that it took, retries included; null before the first one'
)
ENGINE = {replicated}ReplacingMergeTree({copied, }heard_at)
ORDER BY (family, scheduler)
TTL heard_at + INTERVAL 7 DAY
COMMENT 'Schedulers of the last week: what each runs next, and its last failure; query with FINAL';

CREATE TABLE IF NOT EXISTS loss{on_cluster}
(
    family LowCardinality(String) COMMENT 'Family of data whose answers lack rows; empty where no answer does',
    losses Array(Tuple(what String, first_at DateTime('UTC'), last_at DateTime('UTC'), part String)) COMMENT 'Histories and tables without rows that they had, from when to when that changes answers, and the folder of the broken part where rows cannot be counted',
    version UInt64 COMMENT 'When the row was written, in unix nanoseconds by the clock of ClickHouse; the greatest version wins'
)
ENGINE = {replicated}ReplacingMergeTree({copied, }version)
ORDER BY family
COMMENT 'Rows that the store has lost, as schedulers find them; query with FINAL';
