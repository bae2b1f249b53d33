-- How many rows does a staging table have in each UTC day (its start)?
SELECT toUnixTimestamp(toStartOfDay({time})) AS day, count() AS rows
FROM {staged}
GROUP BY day
ORDER BY day
