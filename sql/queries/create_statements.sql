-- By which statement is each table and view made?
SELECT name, create_table_query AS statement
FROM system.tables
WHERE database = currentDatabase()
