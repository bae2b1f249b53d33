-- From when is the oldest observation or cell? The end of time if there is none.
SELECT least(
    (SELECT toUnixTimestamp(if(count() = 0, toDateTime(4294967295, 'UTC'), min(observed_at))) FROM observation),
    (SELECT toUnixTimestamp(if(count() = 0, toDateTime(4294967295, 'UTC'), min(cell))) FROM cell WHERE width = 'quarter')
) AS first
