-- Which of some series have raw rows and cells of a month that disagree? Those of each width must sum up the same rows.
SELECT asset_id
FROM
(
    SELECT asset_id, toString(width) AS cell_width, sum(toInt64(count)) AS rows, sum(toInt64(rank)) AS versions
    FROM {cells:Identifier} FINAL
    WHERE cell >= toDateTime({since:UInt32}, 'UTC') AND cell < toDateTime({until:UInt32}, 'UTC')
      AND asset_id >= {first:String} AND ({before:String} = '' OR asset_id < {before:String})
    GROUP BY asset_id, cell_width

    UNION ALL

    SELECT asset_id, arrayJoin(['quarter', 'day', 'month']) AS cell_width, -toInt64(n), -versions
    FROM
    (
        SELECT asset_id, count() AS n, sum(toInt64(version)) AS versions
        FROM {table:Identifier} FINAL
        WHERE observed_at >= toDateTime({since:UInt32}, 'UTC') AND observed_at < toDateTime({until:UInt32}, 'UTC')
          AND asset_id >= {first:String} AND ({before:String} = '' OR asset_id < {before:String})
        GROUP BY asset_id
    )
)
GROUP BY asset_id, cell_width
HAVING sum(rows) != 0 OR sum(versions) != 0
