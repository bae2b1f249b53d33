-- The user for people that `analytics-service migrate --researcher NAME` makes on a ClickHouse of your own. It has half
-- of the processors and a quarter of the memory. Run again, it renews limits and grants, and keeps the password. The
-- embedded server's user `researcher` has these grants, too, and reads all databases.

CREATE SETTINGS PROFILE IF NOT EXISTS analytics_researcher;

-- The service's queries have priority 1. A materialized view would run within its inserts, and fail them where it fails;
-- a view of this kind is not made, if the server has ignore_empty_sql_security_in_create_view_query = 0. Who may create
-- tables may create views, too. Disks that a table brings along may be anywhere, also on other servers.
ALTER SETTINGS PROFILE analytics_researcher SETTINGS
    priority = 2 READONLY,
    max_threads = {threads} MAX {threads},
    max_memory_usage_for_user = {memory} READONLY,
    max_concurrent_queries_for_user = 4 READONLY,
    max_execution_time = 300 MIN 1 MAX 300,
    default_materialized_view_sql_security = 'INVOKER' READONLY,
    merge_tree_disk READONLY,
    merge_tree_storage_policy READONLY;

CREATE USER IF NOT EXISTS {user} IDENTIFIED WITH sha256_hash BY '{hash}'
    DEFAULT DATABASE {database} SETTINGS PROFILE 'analytics_researcher';

-- Everybody may read what is harmless in `system`; of these two, a user sees their own queries and what they may read.
GRANT SELECT ON {readable} TO {user};

GRANT SELECT ON system.parts TO {user};

GRANT SELECT ON system.processes TO {user};

-- Databases of their own.
GRANT SELECT, INSERT, OPTIMIZE, TRUNCATE ON {research}*.* TO {user};

GRANT CREATE DATABASE, CREATE TABLE, CREATE VIEW, ALTER TABLE, ALTER VIEW ON {research}*.* TO {user};

GRANT DROP DATABASE, DROP TABLE, DROP VIEW ON {research}*.* TO {user};

GRANT CREATE TEMPORARY TABLE ON *.* TO {user};

-- No engine that reaches files or other servers.
GRANT TABLE ENGINE ON AggregatingMergeTree TO {user};

GRANT TABLE ENGINE ON Memory TO {user};

GRANT TABLE ENGINE ON MergeTree TO {user};

GRANT TABLE ENGINE ON ReplacingMergeTree TO {user};

GRANT TABLE ENGINE ON SummingMergeTree TO {user};
