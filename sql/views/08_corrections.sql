-- Corrections of history.

CREATE OR REPLACE VIEW corrections{on_cluster}
(
    began DateTime64(3, 'UTC') COMMENT 'Instant at which the correction began',
    ended Nullable(DateTime64(3, 'UTC')) COMMENT 'Instant at which it was complete. Null before',
    operation LowCardinality(String) COMMENT 'What the correction does: import, backfill, remove, ...',
    dataset LowCardinality(String) COMMENT 'Dataset whose history it changes, such as prices',
    outcome LowCardinality(String) COMMENT 'done; staging or putting in place while it is under way; interrupted until the service completes it',
    rows UInt64 COMMENT 'Number of rows that it adds or removes. 0 while it is staging',
    first_at Nullable(DateTime64(3, 'UTC')) COMMENT 'First second whose data it changes. Null while it is staging, and if its data has no time',
    last_at Nullable(DateTime64(3, 'UTC')) COMMENT 'Last second whose data it changes',
    command String COMMENT 'Command line of the writer'
)
AS WITH holder AS
(
    -- Other requests for the lock last for a moment.
    SELECT requested_at, operation, dataset, command
    FROM write_lock FINAL
    WHERE NOT released AND heartbeat_at BETWEEN now64(3) - INTERVAL 15 SECOND AND now64(3) + INTERVAL 15 SECOND
    ORDER BY requested_at
    LIMIT 1
)
SELECT
    fromUnixTimestamp64Milli(toInt64(version / 1000000), 'UTC') AS began,
    if(finished, toDateTime64(announced_at, 3, 'UTC'), NULL) AS ended,
    operation,
    r.dataset AS dataset,
    multiIf(finished, 'done', (SELECT count() FROM holder) > 0, 'putting in place', 'interrupted') AS outcome,
    rows,
    nullIf(toDateTime64(r.first_at, 3, 'UTC'), toDateTime64(0, 3, 'UTC')) AS first_at,
    nullIf(toDateTime64(r.last_at, 3, 'UTC'), toDateTime64(0, 3, 'UTC')) AS last_at,
    command
FROM rewrite AS r FINAL
WHERE operation != ''
UNION ALL
SELECT requested_at, NULL, operation, h.dataset, 'staging', 0, NULL, NULL, command
FROM holder AS h
WHERE h.dataset != 'all'
  AND h.dataset NOT IN
    (
        SELECT dataset
        FROM rewrite FINAL
        WHERE operation != '' AND (NOT finished OR announced_at >= (SELECT toStartOfSecond(min(requested_at)) FROM holder))
    )
SETTINGS join_use_nulls = 0
COMMENT 'Each correction of history: imports, backfills of the past, removals and recomputations';
