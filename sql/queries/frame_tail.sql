-- Which values were observed in a range that is too short for cells, or not aligned to them? Each is a cell of its own.
SELECT
    asset_id,
    observed_at AS first_at,
    observed_at AS last_at,
    toUInt32(known) AS count,
    known,
    toUInt32(0) AS seconds,
    value AS open,
    value AS high,
    value AS low,
    value AS close,
    toDecimal256(0, 18) AS area
FROM observation FINAL
WHERE history = {history:String}
  AND ({all:UInt8} OR asset_id IN {ids:Array(String)})
  AND observed_at >= toDateTime({raw_from:UInt32}, 'UTC')
  AND observed_at < toDateTime({until:UInt32}, 'UTC')
