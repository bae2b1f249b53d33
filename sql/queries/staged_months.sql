-- Of which UTC months (their starts) does a table have observations, by history?
SELECT DISTINCT history, toUnixTimestamp(toDateTime(toStartOfMonth(observed_at), 'UTC')) AS month
FROM {table:Identifier}
ORDER BY history, month
