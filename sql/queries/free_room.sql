-- How many bytes are free on ClickHouse's disk? What is to stay free does not count.
SELECT unreserved_space AS bytes
FROM system.disks
WHERE name = 'default'
