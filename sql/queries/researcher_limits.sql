-- Half of the processors and a quarter of the memory, for a researcher's limits; the settings that the server has;
-- whether there is a user of that name, and whether `migrate --researcher` has made it.
SELECT
    greatest(1, intDiv(toUInt64(getSetting('max_threads')), 2)) AS threads,
    intDiv(toUInt64((SELECT value FROM system.server_settings WHERE name = 'max_server_memory_usage')), 4) AS memory,
    (SELECT groupArray(name) FROM system.settings) AS settings,
    (SELECT count() FROM system.users WHERE name = {user:String}) AS users,
    (
        SELECT count()
        FROM system.settings_profile_elements
        WHERE user_name = {user:String} AND inherit_profile = 'analytics_researcher'
    ) AS made
