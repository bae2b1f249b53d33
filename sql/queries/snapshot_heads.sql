-- What is the newest snapshot of each family?
SELECT family, max(h.at) AS at, max(h.last_observed_at) AS last_observed_at, max(h.version) AS version
FROM snapshot_head AS h
GROUP BY family
