-- How many bytes of memory have the servers allocated?
SELECT toUInt64(sum(greatest(value, 0))) AS bytes
FROM {from}
WHERE metric = 'MemoryTracking'
{answering}
