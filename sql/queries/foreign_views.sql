-- Which materialized views in databases named research... does ClickHouse fill from inserts into the tables of this one?
SELECT DISTINCT view.1 AS database, view.2 AS name
FROM
(
    SELECT arrayJoin(arrayZip(dependencies_database, dependencies_table)) AS view
    FROM system.tables
    WHERE database = currentDatabase()
)
WHERE startsWith(database, 'research') AND database != currentDatabase()
