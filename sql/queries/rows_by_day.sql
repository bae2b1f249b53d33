-- How many rows does a history have in each UTC day (its start) of a span of time? Corrected rows count until they are
-- merged.
SELECT toUnixTimestamp(toStartOfDay(observed_at)) AS day, count() AS rows
FROM observation
WHERE history = {history:String}
  AND observed_at >= toDateTime({since:UInt32}, 'UTC')
  AND observed_at < toDateTime({until:UInt32}, 'UTC')
GROUP BY day
