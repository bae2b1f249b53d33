-- Which tables of a database differ between the servers of a cluster that answer? Copies of one table have the same id, and
-- those of another id would be tables of their own. Views may differ, unless they are materialized.
SELECT name
FROM {from}
WHERE database = {database:String} AND engine != 'View'
GROUP BY name
HAVING count() != (SELECT uniqExact({server}) FROM {from})
    OR (any(engine) LIKE 'Replicated%' AND uniqExact(uuid) > 1)
ORDER BY name
{answering}
