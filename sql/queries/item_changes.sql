-- Which items of some kinds, of a range of addresses, were there at the start of a range [start, end), or before, and
-- which of them changed in it? Rows count once the ledger lists their run.
SELECT {columns}, observed_at, closed
FROM position
WHERE kind IN {kinds:Array(String)}
  AND address >= {first:String}
  AND address < {before:String}
  AND observed_at < toDateTime({end:UInt32}, 'UTC')
  AND (observed_at, version) IN (SELECT at, version FROM snapshot WHERE family = 'positions')
ORDER BY {key}, observed_at DESC
LIMIT 1 BY {key}, greatest(observed_at, toDateTime({start:UInt32}, 'UTC'))
