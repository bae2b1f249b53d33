-- Of which UTC days (their starts) does a table have observations, by history?
SELECT DISTINCT history, toUnixTimestamp(toStartOfDay(observed_at)) AS day
FROM {table:Identifier}
ORDER BY history, day
