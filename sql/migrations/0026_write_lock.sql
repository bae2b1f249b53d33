-- One correction at a time, which a lock sees to, and what each has done, which the ledger keeps. The next script drops
-- the queue of before.

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

ALTER TABLE rewrite
    ADD COLUMN IF NOT EXISTS what SimpleAggregateFunction(max, String) COMMENT 'What it does, such as import, backfill or remove; empty where a run brought observations late',
    ADD COLUMN IF NOT EXISTS command SimpleAggregateFunction(max, String) COMMENT 'The command line that it came from',
    ADD COLUMN IF NOT EXISTS rows SimpleAggregateFunction(max, UInt64) COMMENT 'Rows that it brings or takes out',
    ADD COLUMN IF NOT EXISTS first_at SimpleAggregateFunction(max, DateTime('UTC')) COMMENT 'First second whose data it changes; 1970 if it changes no data of a time',
    ADD COLUMN IF NOT EXISTS last_at SimpleAggregateFunction(max, DateTime('UTC')) COMMENT 'Last second whose data it changes';

ALTER TABLE rewrite
    COMMENT COLUMN IF EXISTS announced_at 'When it was announced; once it has finished, when that was';

ALTER TABLE rewrite
    MODIFY COMMENT 'Rewrites of history that readers already see. Until a rewrite has finished, readers answer from memory, or wait; read the view corrections';

INSERT INTO rewrite (family, version, announced_at, what, command, rows, first_at, last_at)
SELECT c.family, c.version, r.announced_at, c.what, c.command, c.rows, c.first_at, c.last_at
FROM correction_progress AS c FINAL
INNER JOIN (SELECT family, version, max(announced_at) AS announced_at FROM rewrite GROUP BY family, version) AS r
    ON r.family = c.family AND r.version = c.version;
