-- Up to which instant are raw rows of a table given up, and up to which one by some time before? No row: none
-- ever were.
SELECT
    toUnixTimestamp(max(until)) AS noted,
    toUnixTimestamp(maxIf(until, noted_at <= toDateTime({noted_by:UInt32}, 'UTC'))) AS settled
FROM raw_dropped
WHERE name = {table:String}
GROUP BY name
SETTINGS max_threads = 1
