-- All rows of a table. Repeated ones are absorbed by the table that they are restored into.
SELECT *
FROM {table:Identifier}
SETTINGS max_threads = 2
