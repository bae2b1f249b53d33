-- What the store has lost, and what it takes to find that out.

ALTER TABLE snapshot
    ADD COLUMN IF NOT EXISTS tables Array(LowCardinality(String))
    COMMENT 'Tables of snapshots with rows of the run; empty for runs of versions that did not count them';

ALTER TABLE snapshot
    ADD COLUMN IF NOT EXISTS table_rows Array(UInt64)
    COMMENT 'Number of its rows in each of these tables';

CREATE TABLE IF NOT EXISTS loss{on_cluster}
(
    family LowCardinality(String) COMMENT 'Family of data whose answers lack rows; empty where no answer does',
    losses Array(Tuple(what String, first_at DateTime('UTC'), last_at DateTime('UTC'), part String)) COMMENT 'Histories and tables without rows that they had, from when to when that changes answers, and the folder of the broken part where rows cannot be counted',
    version UInt64 COMMENT 'When the row was written, in unix nanoseconds by the clock of ClickHouse; the greatest version wins'
)
ENGINE = {replicated}ReplacingMergeTree({copied, }version)
ORDER BY family
COMMENT 'Rows that the store has lost, as schedulers find them; query with FINAL';
