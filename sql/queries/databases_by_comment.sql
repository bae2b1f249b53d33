-- Which databases have a comment?
SELECT name
FROM system.databases
WHERE comment = {comment:String}
