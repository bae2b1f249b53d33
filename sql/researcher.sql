-- The user for people that `analytics-service migrate --researcher NAME` creates on your own ClickHouse. It may read, has
-- half of the processors and a quarter of the memory, and writes nothing but temporary files of its queries. Running the
-- command again renews limits and grants, and keeps the password. The embedded server's user `researcher` has equal
-- rights, and reads all databases.

CREATE SETTINGS PROFILE IF NOT EXISTS analytics_researcher{on_cluster};

ALTER SETTINGS PROFILE analytics_researcher{on_cluster} SETTINGS
    max_threads = {threads} MAX {threads},
    max_execution_time = 60 MIN 1 MAX 300,
    join_use_nulls = 1,
    {fixed};

CREATE USER IF NOT EXISTS {user}{on_cluster} IDENTIFIED WITH sha256_hash BY '{hash}'
    DEFAULT DATABASE {database} SETTINGS PROFILE 'analytics_researcher';

-- Replaces grants of earlier versions. A user who may create tables may also create materialized views, which run within
-- the service's INSERTs, and make them fail or wait.
GRANT{on_cluster} SELECT ON {readable} TO {user} WITH REPLACE OPTION;

-- Every user may read harmless tables of `system`. In these two, a user sees only readable tables and own queries.
GRANT{on_cluster} SELECT ON system.parts TO {user};

GRANT{on_cluster} SELECT ON system.processes TO {user};
