-- Which snapshots did jobs and backfills complete after an instant, and what was the first that a scheduler took?
SELECT family, groupUniqArray(toUnixTimestamp(at)) AS instants, minIf(toUnixTimestamp(at), kind = 'job') AS scheduled_since, countIf(kind = 'job') AS scheduled
FROM snapshot
WHERE kind != 'import'
  AND at > toDateTime({after:UInt32}, 'UTC')
GROUP BY family
