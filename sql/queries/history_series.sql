-- Which series have values up to an instant, and when was each observed first, its value known or not? Few rows, whatever
-- the length of the history: cells of months before the instant's month, of days before its day, of quarter hours before
-- its quarter, then observations.
SELECT asset_id, toUnixTimestamp(min(p.first_at)) AS first_at
FROM
(
    SELECT asset_id, first_at, count > 0 AS has_value
    FROM cell
    WHERE history = {history:String}
      AND ((width = 'month' AND cell < toDateTime({month:UInt32}, 'UTC'))
        OR (width = 'day' AND cell >= toDateTime({month:UInt32}, 'UTC') AND cell < toDateTime({day:UInt32}, 'UTC'))
        OR (width = 'quarter' AND cell >= toDateTime({day:UInt32}, 'UTC')
            AND cell < toDateTime({quarter:UInt32}, 'UTC')))

    UNION ALL

    SELECT asset_id, observed_at AS first_at, known AS has_value
    FROM observation
    WHERE history = {history:String}
      AND observed_at >= toDateTime({quarter:UInt32}, 'UTC') AND observed_at < toDateTime({before:UInt32}, 'UTC')
) AS p
GROUP BY asset_id
HAVING max(p.has_value)
ORDER BY asset_id
