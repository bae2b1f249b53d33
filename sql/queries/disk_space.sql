-- How many bytes can still be written on that of the servers' disks with the least share of them, and how many has it?
SELECT unreserved_space AS free, total_space AS total
FROM {from}
WHERE name = 'default'
ORDER BY unreserved_space / total_space
LIMIT 1
SETTINGS skip_unavailable_shards = 1
