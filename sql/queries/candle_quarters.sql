-- Which cells of quarter hours cover a range?
SELECT asset_id, first_at, last_at, count, open, high, low, close, area
FROM {cells:Identifier} FINAL
WHERE width = 'quarter'
  AND ({all:UInt8} OR asset_id IN {ids:Array(String)})
  AND cell >= toDateTime({since:UInt32}, 'UTC')
  AND cell < toDateTime({raw_from:UInt32}, 'UTC')
