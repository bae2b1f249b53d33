-- Migrations, tables, exports, backups, disks and users.

-- name: read_migrations
-- The migrations that were applied to this database.
SELECT number, name, toString(checksum) AS checksum
FROM schema_migration FINAL
ORDER BY number

-- name: list_tables
-- The tables and views of the database, with their bytes on disk.
SELECT name, ifNull(total_bytes, 0) AS bytes
FROM system.tables
WHERE database = currentDatabase()
ORDER BY name

-- name: read_view_query
-- The SELECT of a view.
SELECT as_select AS query
FROM system.tables
WHERE database = currentDatabase()
  AND name = {view:String}

-- name: list_export_columns
-- The columns of each view. A view with parameters has none.
SELECT table AS view, name, type
FROM system.columns
WHERE database = currentDatabase()
  AND table IN (
      SELECT name
      FROM system.tables
      WHERE database = currentDatabase() AND engine = 'View' AND match(name, '^[A-Za-z_][A-Za-z0-9_]*$'))
ORDER BY view, position

-- name: read_export_rows
-- The rows of a view in a range of time, in types that all readers of its formats know. Sorting uses ClickHouse's disk
-- rather than more memory.
SELECT {columns}
FROM {view} AS v
WHERE {time} >= toDateTime({start:UInt32}, 'UTC') AND {time} < toDateTime({end:UInt32}, 'UTC')
ORDER BY {order}
SETTINGS
    max_threads = 2,
    max_bytes_before_external_sort = 268435456

-- name: read_backup_progress
-- The progress of a BACKUP or RESTORE, and why it failed.
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
-- Checks the checksums of all files of a table.
CHECK TABLE {table}
SETTINGS check_query_single_value_result = 1

-- name: read_disk_space
-- The free and total bytes of the disk with the least share of free space, over all servers.
SELECT unreserved_space AS free, total_space AS total
FROM {from}
WHERE name = 'default'
ORDER BY unreserved_space / total_space
LIMIT 1
SETTINGS skip_unavailable_shards = 1

-- name: read_free_room
-- The free bytes of ClickHouse's disk, less the space that it keeps free.
SELECT unreserved_space AS bytes
FROM system.disks
WHERE name = 'default'

-- name: read_researcher_limits
-- Half of the processors and a quarter of the memory, for a researcher's limits; the settings of the server; whether a
-- user of that name exists, and whether `migrate --researcher` created it.
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
