-- How far is a BACKUP or RESTORE, and why did it fail?
SELECT
    toString(status) AS status,
    error,
    if(system.backups.status IN ('CREATING_BACKUP', 'BACKUP_CREATED'), total_size, bytes_read) AS bytes
FROM system.backups
WHERE id = {id:String}
