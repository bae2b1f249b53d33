-- Which databases have a name that begins like this?
SELECT name
FROM system.databases
WHERE startsWith(name, {prefix:String})
