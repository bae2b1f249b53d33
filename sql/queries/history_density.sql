-- How many rows does a table have in each UTC month? Corrected rows count until they are merged.
SELECT partition AS month, sum(rows) AS rows
FROM system.parts
WHERE active AND database = currentDatabase() AND table = {table:String}
GROUP BY month
