-- What is known from cells about quarter hours whose raw rows are gone? Those within one bucket are taken as they are;
-- of others only the first and the last observation are known.
SELECT
    c.asset_id AS asset_id,
    if(piece = 'last', c.last_at, c.first_at) AS first_at,
    if(piece = 'first', c.first_at, c.last_at) AS last_at,
    toUInt32(if(piece = 'whole', c.count, 1)) AS count,
    if(piece = 'last', c.close, c.open) AS open,
    multiIf(piece = 'first', c.open, piece = 'last', c.close, c.high) AS high,
    multiIf(piece = 'first', c.open, piece = 'last', c.close, c.low) AS low,
    if(piece = 'first', c.open, c.close) AS close,
    if(piece = 'whole', c.area, toDecimal256(0, 18)) AS area
FROM
(
    SELECT *
    FROM {cells:Identifier} FINAL
    WHERE width = 'quarter'
      AND ({all:UInt8} OR asset_id IN {ids:Array(String)})
      AND (cell >= toStartOfFifteenMinutes(toDateTime({raw_from:UInt32}, 'UTC'))
        OR toUnixTimestamp(cell) IN {edge_quarters:Array(UInt32)})
      AND cell < toDateTime({kept_from:UInt32}, 'UTC')
) AS c
ARRAY JOIN if(
    roundDown(toUnixTimestamp(c.first_at), {cuts:Array(UInt32)})
        != roundDown(toUnixTimestamp(c.last_at), {cuts:Array(UInt32)}),
    ['first', 'last'], ['whole']) AS piece
WHERE if(piece = 'last', c.last_at, c.first_at) >= toDateTime({since:UInt32}, 'UTC')
  AND if(piece = 'first', c.first_at, c.last_at) < toDateTime({until:UInt32}, 'UTC')
