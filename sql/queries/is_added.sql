-- Are all rows of a staging table in a range of time in the table that they are for, none of them replaced?
SELECT
    (
        SELECT count()
        FROM {staged} FINAL
        WHERE {time} >= toDateTime({since:UInt32}, 'UTC') AND {time} < toDateTime({until:UInt32}, 'UTC')
    ) = (
        SELECT count()
        FROM {table} FINAL
        WHERE {time} >= toDateTime({since:UInt32}, 'UTC') AND {time} < toDateTime({until:UInt32}, 'UTC')
          AND version = {version:UInt64}
    ) AS is_added
