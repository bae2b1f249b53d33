-- Which items did an address have at the end of each part of a range, where they changed in it? Parts begin at `starts`,
-- which ascend from 0, and the last one ends at `last`. Rows count once the ledger lists their run.
SELECT {columns}, closed, observed_at
FROM position
WHERE address = {address:String}
  AND observed_at <= toDateTime({last:UInt32}, 'UTC')
  AND (observed_at, version) IN
  (
      SELECT at, version
      FROM snapshot
      WHERE family = 'positions'
        AND at IN
        (
            SELECT observed_at
            FROM position
            WHERE address = {address:String} AND observed_at <= toDateTime({last:UInt32}, 'UTC')
        )
  )
ORDER BY {key}, observed_at DESC
LIMIT 1 BY {key}, roundDown(toUnixTimestamp(observed_at), {starts:Array(UInt32)})
