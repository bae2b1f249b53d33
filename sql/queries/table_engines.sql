-- Which engine does a database have, and which its table of observations, if there are any?
SELECT
    (SELECT engine FROM system.databases WHERE name = {database:String}) AS engine,
    (SELECT engine FROM system.tables WHERE database = {database:String} AND name = 'observation') AS table_engine
