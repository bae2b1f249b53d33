-- The embedded server keeps its own log of queries for an hour, and loses it when it ends. This table keeps queries for a
-- week that failed or took 100 ms or longer, at most the twenty longest of each five seconds. From researchers, the
-- server logs only queries of ten seconds or longer.

CREATE DATABASE IF NOT EXISTS service_log;

CREATE TABLE IF NOT EXISTS service_log.query_log
(
    ended_at DateTime('UTC') CODEC(Delta, ZSTD(1)) COMMENT 'Instant at which the query ended or failed',
    name LowCardinality(String) COMMENT 'Name of the query in sql/queries, if it is one of the service',
    database LowCardinality(String) COMMENT 'Database that it was sent to',
    milliseconds UInt64 CODEC(T64, ZSTD(1)) COMMENT 'How long it took',
    rows_read UInt64 CODEC(T64, ZSTD(1)) COMMENT 'Rows that it read',
    bytes_read UInt64 CODEC(T64, ZSTD(1)) COMMENT 'Bytes that it read, before compression',
    memory UInt64 CODEC(T64, ZSTD(1)) COMMENT 'Bytes of memory that it used at most',
    error_code Int32 CODEC(T64, ZSTD(1)) COMMENT 'ClickHouse''s code of the error; 0 if there was none',
    error String CODEC(ZSTD(1)) COMMENT 'The first 500 characters of the error; empty if there was none',
    query String CODEC(ZSTD(1)) COMMENT 'Its first 2,000 characters'
)
ENGINE = MergeTree
PARTITION BY toDate(ended_at)
ORDER BY ended_at
TTL ended_at + INTERVAL 7 DAY
SETTINGS ttl_only_drop_parts = 1
COMMENT 'Queries of the last week that failed or took 100 ms or longer';

CREATE MATERIALIZED VIEW IF NOT EXISTS service_log.query_log_feed TO service_log.query_log
AS SELECT
    event_time AS ended_at,
    if(user = 'analytics', log_comment, '') AS name,
    current_database AS database,
    query_duration_ms AS milliseconds,
    read_rows AS rows_read,
    read_bytes AS bytes_read,
    memory_usage AS memory,
    exception_code AS error_code,
    substringUTF8(exception, 1, 500) AS error,
    substringUTF8(q.query, 1, 2000) AS query
FROM system.query_log AS q
WHERE type != 'QueryStart'
  AND (query_duration_ms >= 100 OR exception_code != 0)
ORDER BY query_duration_ms DESC
LIMIT 20
COMMENT 'Feeds service_log.query_log from the server''s own log, which is written every five seconds';
