-- Which databases does the server have?
SELECT name
FROM system.databases
