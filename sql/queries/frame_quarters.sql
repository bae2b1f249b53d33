-- Which cells of quarter hours cover a range, but for those within which a bucket begins?
SELECT asset_id, first_at, last_at, count, known, seconds, open, high, low, close, area
FROM cell FINAL
WHERE history = {history:String}
  AND width = 'quarter'
  AND ({all:UInt8} OR asset_id IN {ids:Array(String)})
  AND cell >= toDateTime({since:UInt32}, 'UTC')
  AND cell < toDateTime({raw_from:UInt32}, 'UTC')
  AND toUnixTimestamp(cell) NOT IN {edge_quarters:Array(UInt32)}
