-- What is the newest snapshot of each family, is its history being rewritten at this moment, and when was a run last
-- heard of that has announced that, and never ended? It is taken for dead after a minute, and may have changed anything.
SELECT
    h.family AS family,
    h.at AS at,
    h.last_observed_at AS last_observed_at,
    h.version AS version,
    h.runs AS runs,
    p.broken_at AS broken_at,
    p.alive > 0 AS rewriting
FROM (
    SELECT family, max(at) AS at, max(last_observed_at) AS last_observed_at, max(version) AS version, sum(runs) AS runs
    FROM snapshot_head
    GROUP BY family) AS h
LEFT JOIN (
    SELECT
        family,
        countIf(announced > now() - 60) AS alive,
        toUnixTimestamp(maxIf(announced, announced <= now() - 60)) AS broken_at
    FROM (
        SELECT family, version, max(announced_at) AS announced
        FROM publication
        GROUP BY family, version
        HAVING max(finished) = 0)
    GROUP BY family) AS p ON p.family = h.family
