-- Which events of all addresses come next, up to an instant? Every row for an event that matches, the greatest version
-- first. The sort key begins with the address, so the columns that select and order are read whole: a few bytes of each
-- event. Of the rows that come first alone, all others are read.
SELECT {columns}, version, gone
FROM account_event
WHERE at BETWEEN toDateTime({start:UInt32}, 'UTC') AND toDateTime({until:UInt32}, 'UTC')
  AND {after}
  AND ({action:String} = '' OR action = {action:String})
  AND (empty({assets:Array(String)}) OR asset_id IN {assets:Array(String)})
  AND at {beyond} (
      SELECT {last}(at)
      FROM
      (
          SELECT at
          FROM account_event
          WHERE at BETWEEN toDateTime({start:UInt32}, 'UTC') AND toDateTime({until:UInt32}, 'UTC')
            AND {after}
            AND ({action:String} = '' OR action = {action:String})
            AND (empty({assets:Array(String)}) OR asset_id IN {assets:Array(String)})
          ORDER BY at {order}
          LIMIT {limit:UInt32}
      )
  )
ORDER BY at {order}, uuid {order}, version DESC
LIMIT {limit:UInt32}
