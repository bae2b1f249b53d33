-- How many observations does a history have in each UTC month (its start) up to an instant, as far as cells count them?
-- Few rows: cells of months before the instant's month, of days before its day, of quarter hours before its quarter.
SELECT toUnixTimestamp(toDateTime(toStartOfMonth(cell), 'UTC')) AS month, toUInt64(sum(count)) AS rows
FROM cell FINAL
WHERE history = {history:String}
  AND cell < toDateTime({before:UInt32}, 'UTC')
  AND ((width = 'month' AND cell < toDateTime({month:UInt32}, 'UTC'))
    OR (width = 'day' AND cell >= toDateTime({month:UInt32}, 'UTC') AND cell < toDateTime({day:UInt32}, 'UTC'))
    OR (width = 'quarter' AND cell >= toDateTime({day:UInt32}, 'UTC')
        AND cell < toDateTime({quarter:UInt32}, 'UTC')))
GROUP BY month
ORDER BY month
