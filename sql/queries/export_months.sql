-- How many rows does a view have in each UTC month (its start) of a span of time?
SELECT toUnixTimestamp(toDateTime(toStartOfMonth({time}), 'UTC')) AS month, count() AS rows
FROM {view} AS v
WHERE {time} >= toDateTime({since:UInt32}, 'UTC') AND {time} < toDateTime({until:UInt32}, 'UTC')
GROUP BY month
ORDER BY month
SETTINGS max_threads = 2
