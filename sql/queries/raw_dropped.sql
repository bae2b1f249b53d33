-- Up to which instant have raw rows of a table been noted for dropping: by all notes, and by notes that are old enough?
-- No row: there is no note.
SELECT
    toUnixTimestamp(max(until)) AS noted,
    toUnixTimestamp(maxIf(until, noted_at <= toDateTime({noted_by:UInt32}, 'UTC'))) AS settled
FROM raw_dropped
WHERE name = {table:String}
GROUP BY name
SETTINGS max_threads = 1
