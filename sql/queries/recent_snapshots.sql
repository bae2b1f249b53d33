-- Which snapshots did jobs and backfills complete after an instant, what was the first that a scheduler took, and how many
-- rows has the newest of a scheduler?
SELECT
    family,
    groupUniqArray(toUnixTimestamp(at)) AS instants,
    minIf(toUnixTimestamp(at), kind = 'job') AS scheduled_since,
    countIf(kind = 'job') AS scheduled,
    maxIf(toUnixTimestamp(at), kind = 'job') AS newest,
    argMaxIf(rows, (at, version), kind = 'job') AS newest_rows
FROM snapshot
WHERE kind != 'import'
  AND at > toDateTime({after:UInt32}, 'UTC')
GROUP BY family
