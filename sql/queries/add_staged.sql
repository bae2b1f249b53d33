-- Adds the rows of a staging table in a range of time, without those that are there already, or in a later version.
INSERT INTO {table}
SELECT *
FROM {staged}
WHERE {time} >= toDateTime({since:UInt32}, 'UTC') AND {time} < toDateTime({until:UInt32}, 'UTC')
  AND ({key}) NOT IN
    (
        SELECT {key}
        FROM {table}
        WHERE {time} >= toDateTime({since:UInt32}, 'UTC') AND {time} < toDateTime({until:UInt32}, 'UTC')
          AND version >= {version:UInt64}
    )
