-- Which single observations are known from cells of quarter hours whose raw rows are gone? The first and the last one:
-- of all quarter hours from an instant on, and of earlier ones that a bucket ends within.
SELECT asset_id, kept.1 AS observed_at, kept.2 AS value, rank
FROM {cells:Identifier} FINAL
ARRAY JOIN [(first_at, open), (last_at, close)] AS kept
WHERE width = 'quarter'
  AND asset_id IN {ids:Array(String)}
  AND cell >= toDateTime({oldest:UInt32}, 'UTC')
  AND cell < toDateTime({kept_from:UInt32}, 'UTC')
  AND (cell >= toDateTime({raw_from:UInt32}, 'UTC')
    OR roundDown(toUnixTimestamp(first_at), {ends:Array(UInt32)})
        != roundDown(toUnixTimestamp(last_at), {ends:Array(UInt32)}))
  AND kept.1 < toDateTime({until:UInt32}, 'UTC')
