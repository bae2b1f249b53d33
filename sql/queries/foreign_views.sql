-- Which materialized views in databases of researchers does ClickHouse fill from inserts into the tables of this one?
SELECT DISTINCT view
FROM
(
    SELECT arrayJoin(arrayZip(dependencies_database, dependencies_table)) AS view
    FROM system.tables
    WHERE database = currentDatabase()
)
WHERE startsWith(view.1, {research:String})
