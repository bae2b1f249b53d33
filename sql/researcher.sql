-- The user for people that `analytics-service migrate --researcher NAME` makes on a ClickHouse of your own. It reads, has
-- half of the processors and a quarter of the memory, and writes nothing but temporary files of its queries. Run again,
-- it renews limits and grants, and keeps the password. The embedded server's user `researcher` has the same rights, and
-- reads all databases.

CREATE SETTINGS PROFILE IF NOT EXISTS analytics_researcher{on_cluster};

ALTER SETTINGS PROFILE analytics_researcher{on_cluster} SETTINGS
    max_threads = {threads} MAX {threads},
    max_execution_time = 60 MIN 1 MAX 300,
    join_use_nulls = 1,
    {fixed};

CREATE USER IF NOT EXISTS {user}{on_cluster} IDENTIFIED WITH sha256_hash BY '{hash}'
    DEFAULT DATABASE {database} SETTINGS PROFILE 'analytics_researcher';

-- Earlier versions allowed more. Who may create tables may also create materialized views, which run within the service's
-- inserts, and fail or delay them.
GRANT{on_cluster} SELECT ON {readable} TO {user} WITH REPLACE OPTION;

-- Everybody may read what is harmless in `system`; of these two, a user sees their own queries and what they may read.
GRANT{on_cluster} SELECT ON system.parts TO {user};

GRANT{on_cluster} SELECT ON system.processes TO {user};
