-- In how many quarter hours whose raw rows are gone may an observation be needed that is neither the first nor the
-- last? In those with more than two observations, if a cut or an end lies between the first and the last one.
SELECT count() AS hidden
FROM {cells:Identifier} FINAL
WHERE width = 'quarter'
  AND asset_id IN {ids:Array(String)}
  AND cell >= toDateTime({oldest:UInt32}, 'UTC')
  AND cell < toDateTime({kept_from:UInt32}, 'UTC')
  AND cell < toDateTime({until:UInt32}, 'UTC')
  AND count > 2
  AND (roundDown(toUnixTimestamp(first_at), {cuts:Array(UInt32)})
        != roundDown(toUnixTimestamp(last_at), {cuts:Array(UInt32)})
    OR roundDown(toUnixTimestamp(first_at) + 1, {ends:Array(UInt32)})
        != roundDown(toUnixTimestamp(last_at), {ends:Array(UInt32)}))
