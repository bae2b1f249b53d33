-- Does a family's head exceed what its runs have left, and have they left any?
SELECT e.version > 0 AS has_runs,
    h.at > e.at OR h.last_observed_at > e.last_observed_at OR arraySort(h.sources) != arraySort(e.sources) AS exceeds
FROM (SELECT * FROM snapshot_head FINAL WHERE family = '{family}') AS h
CROSS JOIN ({ends}) AS e
