-- Migrations, tables, exports, backups, disks and users.

-- name: read_migrations
-- Which migrations were applied to this database?
SELECT number, name, toString(checksum) AS checksum
FROM schema_migration FINAL
ORDER BY number

-- name: list_tables
-- Which tables and views does the database have, and how many bytes has each on the disk?
SELECT name, ifNull(total_bytes, 0) AS bytes
FROM system.tables
WHERE database = currentDatabase()
ORDER BY name

-- name: list_databases
-- Which databases does the server have?
SELECT name
FROM system.databases

-- name: read_view_query
-- What does a view select?
SELECT as_select AS query
FROM system.tables
WHERE database = currentDatabase()
  AND name = {view:String}

-- name: count_rows
-- How many rows does a table have? Repeated ones count until they are merged.
SELECT count() AS rows
FROM {table:Identifier}

-- name: list_export_columns
-- Which columns does each view have? One that takes parameters has none.
SELECT table AS view, name, type
FROM system.columns
WHERE database = currentDatabase()
  AND table IN (
      SELECT name
      FROM system.tables
      WHERE database = currentDatabase() AND engine = 'View' AND match(name, '^[A-Za-z_][A-Za-z0-9_]*$'))
ORDER BY view, position

-- name: read_export_rows
-- The rows of a view in a span of time, in types that all readers of its formats know. Sorting uses the disk of ClickHouse
-- rather than more memory.
SELECT {columns}
FROM {view} AS v
WHERE {time} >= toDateTime({start:UInt32}, 'UTC') AND {time} < toDateTime({end:UInt32}, 'UTC')
ORDER BY {order}
SETTINGS
    max_threads = 2,
    max_bytes_before_external_sort = 268435456

-- name: read_backup_progress
-- How far is a BACKUP or RESTORE, and why did it fail?
SELECT
    toString(status) AS status,
    error,
    if(system.backups.status IN ('CREATING_BACKUP', 'BACKUP_CREATED'), total_size, bytes_read) AS bytes
FROM system.backups
WHERE id = {id:String}

-- name: kill_backup
-- Ends a BACKUP or RESTORE.
KILL QUERY WHERE query_id IN (SELECT query_id FROM system.backups WHERE id = {id:String}) SYNC

-- name: check_table
-- Are all files of a table as they were written?
CHECK TABLE {table}
SETTINGS check_query_single_value_result = 1

-- name: read_disk_space
-- How many bytes can still be written on that of the servers' disks with the least share of them, and how many has it?
SELECT unreserved_space AS free, total_space AS total
FROM {from}
WHERE name = 'default'
ORDER BY unreserved_space / total_space
LIMIT 1
SETTINGS skip_unavailable_shards = 1

-- name: read_free_room
-- How many bytes are free on ClickHouse's disk? What is to stay free does not count.
SELECT unreserved_space AS bytes
FROM system.disks
WHERE name = 'default'

-- name: read_researcher_limits
-- Half of the processors and a quarter of the memory, for a researcher's limits; the settings that the server has;
-- whether there is a user of that name, and whether `migrate --researcher` has made it.
SELECT
    greatest(1, intDiv(toUInt64(getSetting('max_threads')), 2)) AS threads,
    intDiv(toUInt64((SELECT value FROM system.server_settings WHERE name = 'max_server_memory_usage')), 4) AS memory,
    (SELECT groupArray(name) FROM system.settings) AS settings,
    (SELECT count() FROM system.users WHERE name = {user:String}) AS users,
    (
        SELECT count()
        FROM system.settings_profile_elements
        WHERE user_name = {user:String} AND inherit_profile = 'analytics_researcher'
    ) AS made
