-- What is the newest completed state of a family? Rewrites of it are not looked at.
SELECT max(h.at) AS at, max(h.last_observed_at) AS last_observed_at, max(h.version) AS version, sum(h.runs) AS runs
FROM snapshot_head AS h
WHERE family = {family:String}
HAVING version > 0
SETTINGS max_threads = 1
