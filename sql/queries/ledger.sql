-- What is the newest snapshot of each family, which rewrites of it are unfinished, how many have finished, and what are the
-- sources of its runs? Finished rewrites are one row, with version 0; `at` is when the last was announced. Rewrites are
-- read first: a head that has the runs of a finished rewrite may come with too low a count of rewrites, and is then
-- refused, but never the other way round. `now` is the time by this clock.
SELECT
    'rewrite' AS how,
    family,
    if(finished, 0, r.version) AS version,
    count() AS runs,
    max(announced_at) AS at,
    toDateTime(0, 'UTC') AS last_observed_at,
    [] AS sources,
    toUInt32(now()) AS now,
    CAST([], 'Array(Tuple(what String, first_at DateTime(\'UTC\'), last_at DateTime(\'UTC\'), part String))') AS losses
FROM rewrite AS r FINAL
GROUP BY family, version

UNION ALL

SELECT 'head', family, version, runs, at, last_observed_at, sources, toUInt32(now()), []
FROM snapshot_head FINAL

UNION ALL

SELECT 'loss', family, l.version, 0, toDateTime(0, 'UTC'), toDateTime(0, 'UTC'), [], toUInt32(now()), losses
FROM loss AS l FINAL
SETTINGS max_threads = 1
