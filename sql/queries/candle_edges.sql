-- Which values were observed in those quarter hours of a range within which a bucket begins? Each is a cell of its own.
SELECT
    asset_id,
    observed_at AS first_at,
    observed_at AS last_at,
    toUInt32(1) AS count,
    {value:Identifier} AS open,
    {value:Identifier} AS high,
    {value:Identifier} AS low,
    {value:Identifier} AS close,
    toDecimal256(0, 18) AS area
FROM {table:Identifier} FINAL
WHERE ({all:UInt8} OR asset_id IN {ids:Array(String)})
  AND observed_at >= toDateTime({edges_from:UInt32}, 'UTC')
  AND observed_at < toDateTime({until:UInt32}, 'UTC')
  AND toUnixTimestamp(toStartOfFifteenMinutes(observed_at)) IN {edge_quarters:Array(UInt32)}
