-- All rows of a table that belong to a backup. Repeated ones are absorbed by the table that they are restored into.
SELECT *
FROM {table:Identifier}
WHERE {only}
SETTINGS max_threads = 2
