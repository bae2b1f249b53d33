-- Up to which instant raw rows of histories are given up (ANALYTICS_RAW_DAYS). Whoever reads or writes older ones looks
-- here first; the rows go some time later.

CREATE TABLE IF NOT EXISTS raw_dropped
(
    name LowCardinality(String) COMMENT 'Name of the table',
    until DateTime('UTC') COMMENT 'Rows observed before this instant, the first of a UTC month, are given up; of several rows for one table the latest instant holds',
    noted_at DateTime('UTC') COMMENT 'Instant at which that was decided; the rows are there for an hour more'
)
ENGINE = ReplacingMergeTree
ORDER BY (name, until)
COMMENT 'Tables of which old raw rows are not kept; their cells are';
