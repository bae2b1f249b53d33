-- On which UTC days (their starts) does a rewrite add or take out observations, by history?
SELECT DISTINCT history, toUnixTimestamp(toStartOfDay(observed_at)) AS day
FROM (SELECT history, observed_at FROM {added:Identifier} UNION ALL SELECT history, observed_at FROM {removed:Identifier})
ORDER BY history, day
