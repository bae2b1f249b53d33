-- Which snapshots of a family in a range [start, end) have jobs and backfills completed, in the order of time, how, and
-- from which source?
SELECT
    at,
    argMax(kind, version) AS kind,
    argMax(s.source, version) AS source,
    argMax(s.simulated, version) AS simulated
FROM snapshot AS s
WHERE family = {family:String}
  AND s.kind IN ('job', 'backfill')
  AND at >= toDateTime({start:UInt32}, 'UTC') AND at < toDateTime({end:UInt32}, 'UTC')
GROUP BY at
ORDER BY at
