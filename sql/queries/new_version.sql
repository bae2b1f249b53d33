-- A version for what is written now: the time, or a number after the greatest version that there is.
SELECT greatest(
    toUInt64(toUnixTimestamp64Nano(now64(9))),
    (SELECT max(version) FROM (SELECT version FROM snapshot_head UNION ALL SELECT version FROM asset_definition))
        + 1 + rand() % 1000000
) AS version
SETTINGS max_threads = 1
