-- Which rewrites of each family were announced, which runs add to its end, what is its newest snapshot, and what are the
-- sources of its runs? A rewrite is open until it has finished; the writer of a silent run sent no heartbeat for three
-- seconds. Rewrites are read first: a head that has the runs of a finished rewrite may come with too low a count of
-- rewrites, and is then refused, but never the other way round.
SELECT
    family,
    toDateTime(0, 'UTC') AS at,
    toDateTime(0, 'UTC') AS last_observed_at,
    toUInt64(0) AS version,
    toUInt64(0) AS runs,
    count() AS rewrites,
    groupArrayIf(r.version, r.finished = 0) AS open,
    emptyArrayUInt64() AS appends,
    groupArrayIf(r.version, r.finished = 0 AND r.heard_at <= now() - 3) AS silent,
    CAST([], 'Array(Tuple(source String, simulated Bool))') AS sources
FROM
(
    SELECT family, version, max(p.announced_at) AS heard_at, max(p.finished) AS finished
    FROM publication AS p
    GROUP BY family, version
) AS r
GROUP BY family

UNION ALL

SELECT
    family,
    toDateTime(0, 'UTC') AS at,
    toDateTime(0, 'UTC') AS last_observed_at,
    toUInt64(0) AS version,
    toUInt64(0) AS runs,
    toUInt64(0) AS rewrites,
    emptyArrayUInt64() AS open,
    groupArray(a.version) AS appends,
    groupArrayIf(a.version, a.heard_at <= now() - 3) AS silent,
    CAST([], 'Array(Tuple(source String, simulated Bool))') AS sources
FROM
(
    SELECT family, version, max(p.announced_at) AS heard_at
    FROM append_run AS p
    GROUP BY family, version
    HAVING max(p.finished) = 0
) AS a
GROUP BY family

UNION ALL

SELECT
    family,
    max(h.at) AS at,
    max(h.last_observed_at) AS last_observed_at,
    max(h.version) AS version,
    sum(h.runs) AS runs,
    toUInt64(0) AS rewrites,
    emptyArrayUInt64() AS open,
    emptyArrayUInt64() AS appends,
    emptyArrayUInt64() AS silent,
    groupUniqArrayArray(h.sources) AS sources
FROM snapshot_head AS h
GROUP BY family
SETTINGS max_threads = 1
