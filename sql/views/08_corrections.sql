-- Corrections of history.

CREATE OR REPLACE VIEW corrections{on_cluster}
(
    began DateTime64(3, 'UTC') COMMENT 'When it began',
    ended Nullable(DateTime64(3, 'UTC')) COMMENT 'When it was complete; null before',
    what LowCardinality(String) COMMENT 'What it does: import, backfill, remove, ...',
    family LowCardinality(String) COMMENT 'Family whose history it changes, such as prices',
    outcome LowCardinality(String) COMMENT 'done; stopped, with nothing changed; or what is going on: waiting, staging, putting in place',
    rows UInt64 COMMENT 'Rows that it has brought or taken out so far',
    expected UInt64 COMMENT 'Rows that it will have; 0 if nobody knows',
    first_at Nullable(DateTime64(3, 'UTC')) COMMENT 'First second whose data it changes; null if nobody knows yet',
    last_at Nullable(DateTime64(3, 'UTC')) COMMENT 'Last second whose data it changes',
    command String COMMENT 'The command line that it came from'
)
AS SELECT
    fromUnixTimestamp64Milli(toInt64(began_ns / 1000000), 'UTC') AS began,
    multiIf(stage = 'done', toNullable(heard_at), r.finished, toDateTime64(r.announced_at, 3, 'UTC'), NULL) AS ended,
    what,
    c.family AS family,
    multiIf(r.finished OR stage = 'done', 'done', r.version != 0, 'putting in place', heard_at < now64(3) - INTERVAL 5 SECOND, 'stopped', stage) AS outcome,
    rows,
    expected,
    nullIf(toDateTime64(first_at, 3, 'UTC'), toDateTime64(0, 3, 'UTC')) AS first_at,
    nullIf(toDateTime64(last_at, 3, 'UTC'), toDateTime64(0, 3, 'UTC')) AS last_at,
    command
FROM correction_progress AS c FINAL
LEFT JOIN
(
    SELECT family, version, max(announced_at) AS announced_at, max(finished) AS finished
    FROM rewrite
    GROUP BY family, version
) AS r ON r.family = c.family AND r.version = c.version
WHERE what != 'backup' AND (stage != 'waiting' OR heard_at >= now64(3) - INTERVAL 5 SECOND)
SETTINGS join_use_nulls = 0
COMMENT 'Each correction of history: imports, backfills of the past, and what takes out, computes again or renames';
