-- Drops a materialized view of a researcher on the asked server.
DROP VIEW IF EXISTS {database:Identifier}.{table:Identifier}
