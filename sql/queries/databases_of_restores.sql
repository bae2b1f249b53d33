-- Which working copies have restores of a database made? Whoever else may have databases with similar names.
SELECT name
FROM system.databases
WHERE match(name, concat('^', {database:String}, '_restore_[0-9]+$'))
