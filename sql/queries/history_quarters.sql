-- What was the last value of each series in each quarter hour of a range?
SELECT asset_id, observed_at, {value:Identifier} AS value, rank
FROM {rollup:Identifier}
WHERE width = 'quarter'
  AND ({all:UInt8} OR asset_id IN {ids:Array(String)})
  AND cell >= toDateTime({quarters_from:UInt32}, 'UTC')
  AND cell < toDateTime({raw_from:UInt32}, 'UTC')
