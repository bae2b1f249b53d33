-- How many observations are to be taken out, by history, and from when to when?
SELECT
    history,
    count() AS observations,
    toUnixTimestamp(min(observed_at)) AS first,
    toUnixTimestamp(max(observed_at)) AS last
FROM ({keys})
GROUP BY history
ORDER BY history
