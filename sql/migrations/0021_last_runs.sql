-- Schedulers also tell of their last run: when a snapshot was due, what came of it, and how long it took.

ALTER TABLE job_run ADD COLUMN IF NOT EXISTS ran_at Nullable(DateTime('UTC')) COMMENT 'Instant of the snapshot that the last run was for; null before the first one';

ALTER TABLE job_run ADD COLUMN IF NOT EXISTS outcome LowCardinality(String) COMMENT 'What came of that run: done, already_done, superseded or failed; empty before the first one';

ALTER TABLE job_run ADD COLUMN IF NOT EXISTS took_ms Nullable(UInt32) COMMENT 'Milliseconds that it took, retries included; null before the first one';
