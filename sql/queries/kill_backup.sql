-- Ends a BACKUP or RESTORE.
KILL QUERY WHERE query_id IN (SELECT query_id FROM system.backups WHERE id = {id:String}) SYNC
