-- How many bytes of memory has the server allocated?
SELECT toUInt64(greatest(value, 0)) AS bytes
FROM system.metrics
WHERE metric = 'MemoryTracking'
