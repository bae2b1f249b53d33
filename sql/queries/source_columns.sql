-- Which columns do the views of a source have, and of which types?
SELECT table, name, type
FROM system.columns
WHERE database = {database:String} AND startsWith(table, 'source_')
ORDER BY table, position
