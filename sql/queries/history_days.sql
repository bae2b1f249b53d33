-- What was the last value of each series on each UTC day of a range, and in each quarter hour up to the time of day at
-- which buckets end?
SELECT asset_id, last_at AS observed_at, close AS value, version AS rank
FROM cell
WHERE history = {history:String}
  AND ({all:UInt8} OR asset_id IN {ids:Array(String)})
  AND (
    (width = 'day' AND cell >= toDateTime({since:UInt32}, 'UTC') AND cell < toDateTime({days_to:UInt32}, 'UTC'))
    OR (width = 'quarter' AND cell >= toDateTime({quarters_from:UInt32}, 'UTC')
        AND cell < toDateTime({raw_from:UInt32}, 'UTC')
        AND toUnixTimestamp(cell) % 86400 < {edge_seconds:UInt32}
        AND (empty({edge_days:Array(UInt32)}) OR toUnixTimestamp(toStartOfDay(cell)) IN {edge_days:Array(UInt32)})))
