-- Which values may be the last before an instant, however long ago? Few rows, whatever the length of the history: cells
-- of months before the instant's month, of days before its day, of quarter hours before its quarter, then observations.
SELECT asset_id, last_at AS observed_at, close AS value, version AS rank
FROM cell
WHERE history = {history:String}
  AND asset_id IN {ids:Array(String)}
  AND (
    (width = 'month' AND cell < toDateTime({month:UInt32}, 'UTC'))
    OR (width = 'day' AND cell >= toDateTime({month:UInt32}, 'UTC')
        AND cell < toDateTime({day:UInt32}, 'UTC'))
    OR (width = 'quarter' AND cell >= toDateTime({day:UInt32}, 'UTC')
        AND cell < toDateTime({quarter:UInt32}, 'UTC')))

UNION ALL

SELECT asset_id, observed_at, value, version AS rank
FROM observation
WHERE history = {history:String}
  AND asset_id IN {ids:Array(String)}
  AND observed_at >= toDateTime({quarter:UInt32}, 'UTC')
  AND observed_at < toDateTime({before:UInt32}, 'UTC')
