-- How many rows does a table have? Repeated ones count until they are merged.
SELECT count() AS rows
FROM {table:Identifier}
