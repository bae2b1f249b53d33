-- What would be the head of each family if the ledger had but some of its rows? Replaced ones count, as in a backup.
SELECT family, max(at) AS at, max(last_observed_at) AS last_observed_at, max(version) AS version
FROM (SELECT * FROM snapshot WHERE {only})
GROUP BY family
