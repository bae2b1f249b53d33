-- Which cells and observations may have the last value of each series before an instant, however long ago? Few rows,
-- whatever the length of the history: cells of months before the instant's month, of days before its day, of quarter hours
-- before its quarter, then observations.
SELECT asset_id, first_at, last_at, known, close
FROM cell FINAL
WHERE history = {history:String}
  AND asset_id IN {ids:Array(String)}
  AND (
    (width = 'month' AND cell < toDateTime({month:UInt32}, 'UTC'))
    OR (width = 'day' AND cell >= toDateTime({month:UInt32}, 'UTC')
        AND cell < toDateTime({day:UInt32}, 'UTC'))
    OR (width = 'quarter' AND cell >= toDateTime({day:UInt32}, 'UTC')
        AND cell < toDateTime({quarter:UInt32}, 'UTC')))

UNION ALL

SELECT asset_id, observed_at AS first_at, observed_at AS last_at, known, value AS close
FROM observation FINAL
WHERE history = {history:String}
  AND asset_id IN {ids:Array(String)}
  AND observed_at >= toDateTime({quarter:UInt32}, 'UTC')
  AND observed_at < toDateTime({before:UInt32}, 'UTC')
