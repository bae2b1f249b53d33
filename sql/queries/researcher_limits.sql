-- Half of the processors and a quarter of the memory, for a researcher's limits; whether there is a user of that name,
-- whether `migrate --researcher` has made it, and whether defaults decide which materialized views are made.
SELECT
    greatest(1, intDiv(toUInt64(getSetting('max_threads')), 2)) AS threads,
    intDiv(toUInt64((SELECT value FROM system.server_settings WHERE name = 'max_server_memory_usage')), 4) AS memory,
    (SELECT count() FROM system.users WHERE name = {user:String}) AS users,
    (
        SELECT count()
        FROM system.settings_profile_elements
        WHERE user_name = {user:String} AND inherit_profile = 'analytics_researcher'
    ) AS made,
    (
        SELECT count()
        FROM system.server_settings
        WHERE name = 'ignore_empty_sql_security_in_create_view_query' AND value = '0'
    ) AS refuses_views
