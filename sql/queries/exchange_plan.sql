-- Which tables does a restore exchange, and what are the UUIDs of the restored ones?
SELECT planned.1 AS name, planned.2 AS uuid
FROM {database}.exchange_plan
