-- What is the newest snapshot of each family, and how many runs made its data?
SELECT family, max(at) AS at, max(last_observed_at) AS last_observed_at, max(version) AS version, sum(runs) AS runs
FROM snapshot_head
GROUP BY family
