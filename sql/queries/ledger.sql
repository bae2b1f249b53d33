-- What is the newest snapshot of each family, and which of its rewrites were announced? A rewrite is open until it has
-- finished; it is silent when its writer has sent no heartbeat for three seconds.
SELECT
    family,
    max(h.at) AS at,
    max(h.last_observed_at) AS last_observed_at,
    max(h.version) AS version,
    sum(h.runs) AS runs,
    toUInt64(0) AS rewrites,
    emptyArrayUInt64() AS open,
    emptyArrayUInt64() AS silent
FROM snapshot_head AS h
GROUP BY family

UNION ALL

SELECT
    family,
    toDateTime(0, 'UTC') AS at,
    toDateTime(0, 'UTC') AS last_observed_at,
    toUInt64(0) AS version,
    toUInt64(0) AS runs,
    count() AS rewrites,
    groupArrayIf(r.version, r.finished = 0) AS open,
    groupArrayIf(r.version, r.finished = 0 AND r.heard_at <= now() - 3) AS silent
FROM
(
    SELECT family, version, max(p.announced_at) AS heard_at, max(p.finished) AS finished
    FROM publication AS p
    GROUP BY family, version
) AS r
GROUP BY family
SETTINGS max_threads = 1
