-- Which events of all addresses come next, before an instant? Every row for an event that matches, the greatest version
-- first. The sort key begins with the address, so the columns that select are read whole: a few bytes of each event. The
-- page ends with the second of its last row, and all other columns are read of the rows up to there.
SELECT {columns}, version, gone
FROM account_event
PREWHERE at >= toDateTime({start:UInt32}, 'UTC') AND at < toDateTime({end:UInt32}, 'UTC')
  AND (empty({actions:Array(String)}) OR action IN {actions:Array(String)})
  AND (empty({assets:Array(String)}) OR asset_id IN {assets:Array(String)})
  AND at {within} (
      SELECT {furthest}
      FROM
      (
          SELECT at
          FROM account_event
          PREWHERE at >= toDateTime({after_start:UInt32}, 'UTC') AND at < toDateTime({after_end:UInt32}, 'UTC')
            AND (empty({actions:Array(String)}) OR action IN {actions:Array(String)})
            AND (empty({assets:Array(String)}) OR asset_id IN {assets:Array(String)})
          ORDER BY at {order}
          LIMIT {limit:UInt32}
      )
  )
WHERE {after}
ORDER BY at {order}, uuid {order}, version DESC
LIMIT {limit:UInt32}
