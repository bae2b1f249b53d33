-- Which asset ids does a column hold?
SELECT DISTINCT toString({column:Identifier}) AS asset_id
FROM {table:Identifier}
