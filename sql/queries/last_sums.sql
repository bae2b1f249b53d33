-- What is the last value of each series of some cumulative histories before an instant, however long ago? Few rows,
-- whatever the length of the history: cells of months before the instant's month, of days before its day, of quarter hours
-- before its quarter, then observations.
SELECT history, asset_id, argMax(p.close, p.last_at) AS value
FROM
(
    SELECT history, asset_id, last_at, close
    FROM cell FINAL
    WHERE history IN {histories:Array(String)}
      AND ((width = 'month' AND cell < toDateTime({month:UInt32}, 'UTC'))
        OR (width = 'day' AND cell >= toDateTime({month:UInt32}, 'UTC') AND cell < toDateTime({day:UInt32}, 'UTC'))
        OR (width = 'quarter' AND cell >= toDateTime({day:UInt32}, 'UTC')
            AND cell < toDateTime({quarter:UInt32}, 'UTC')))

    UNION ALL

    SELECT history, asset_id, observed_at AS last_at, value AS close
    FROM observation FINAL
    WHERE history IN {histories:Array(String)}
      AND observed_at >= toDateTime({quarter:UInt32}, 'UTC')
      AND observed_at < toDateTime({before:UInt32}, 'UTC')
) AS p
GROUP BY history, asset_id
ORDER BY history, asset_id
