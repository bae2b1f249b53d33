-- How many rows have the completed runs of each family written?
SELECT family, sum(rows) AS rows
FROM snapshot FINAL
GROUP BY family
