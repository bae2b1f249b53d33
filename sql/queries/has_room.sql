-- Does the disk have room for an INSERT, which reserves at least 1 MiB? What is to stay free does not count.
SELECT unreserved_space >= 1048576 AS has_room
FROM system.disks
WHERE name = 'default'
