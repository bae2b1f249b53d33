-- Which databases did restores of a database create for themselves? The pattern is exact, because databases of others
-- may have similar names.
SELECT name
FROM system.databases
WHERE match(name, concat('^', {database:String}, '_restore_[0-9]+$'))
