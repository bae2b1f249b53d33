-- Which data may be added to this store? No row: nobody has claimed it yet.
SELECT comment AS side
FROM system.tables
WHERE database = currentDatabase()
  AND name = {table:String}
