-- Which servers that answer have replicated tables of a database that are read-only, or that lack rows for more than some seconds?
SELECT {server} AS server, countIf(is_readonly) AS readonly, max(absolute_delay) AS delay
FROM {from}
WHERE database = {database:String} AND (is_readonly OR absolute_delay > {seconds:UInt32})
GROUP BY server
ORDER BY server
{answering}
