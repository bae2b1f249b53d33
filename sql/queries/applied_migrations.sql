-- Which migrations were applied to this database?
SELECT number, name, toString(checksum) AS checksum
FROM schema_migration FINAL
ORDER BY number
