-- Which cells cover a range of days and quarter hours? Days within which a bucket begins or ends are read in quarter
-- hours, without those within which one begins.
SELECT asset_id, first_at, last_at, count, known, seconds, open, high, low, close, area
FROM cell FINAL
WHERE history = {history:String}
  AND ({all:UInt8} OR asset_id IN {ids:Array(String)})
  AND (
    (width = 'day' AND cell >= toDateTime({since:UInt32}, 'UTC') AND cell < toDateTime({days_to:UInt32}, 'UTC')
        AND toUnixTimestamp(cell) NOT IN {edge_days:Array(UInt32)})
    OR (width = 'quarter' AND cell >= toDateTime({since:UInt32}, 'UTC') AND cell < toDateTime({raw_from:UInt32}, 'UTC')
        AND toUnixTimestamp(cell) NOT IN {edge_quarters:Array(UInt32)}
        AND (cell >= toDateTime({days_to:UInt32}, 'UTC')
            OR toUnixTimestamp(toStartOfDay(cell)) IN {edge_days:Array(UInt32)})))
