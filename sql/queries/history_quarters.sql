-- What was the last value of each series in each quarter hour of a range?
SELECT asset_id, last_at AS observed_at, close AS value, version AS rank
FROM cell
WHERE history = {history:String}
  AND width = 'quarter'
  AND ({all:UInt8} OR asset_id IN {ids:Array(String)})
  AND cell >= toDateTime({quarters_from:UInt32}, 'UTC')
  AND cell < toDateTime({raw_from:UInt32}, 'UTC')
