-- Which source did the newest run of a job or backfill take its rows from, simulated ones apart?
SELECT source
FROM snapshot
WHERE kind IN ('job', 'backfill')
  AND NOT simulated
ORDER BY version DESC
LIMIT 1
