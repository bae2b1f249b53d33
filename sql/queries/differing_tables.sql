-- Which tables of a database differ between the servers of a cluster? Copies of one table have the same id, and those of
-- another id would be tables of their own. Views may differ.
SELECT name
FROM clusterAllReplicas({cluster}, system.tables)
WHERE database = {database:String} AND engine NOT LIKE '%View'
GROUP BY name
HAVING count() != (SELECT count() FROM system.clusters WHERE cluster = {cluster})
    OR (any(engine) LIKE 'Replicated%' AND uniqExact(uuid) > 1)
ORDER BY name
