-- Which events of an address come next, before an instant? Of several rows for one event, the one with the greatest
-- version, unless that takes it out. Rows are read in the order of the sort key, in small blocks and without reading ahead,
-- so a page reads little more than it shows.
SELECT {columns}
FROM
(
    SELECT *
    FROM account_event
    WHERE {whose}
      AND at >= toDateTime({start:UInt32}, 'UTC') AND at < toDateTime({end:UInt32}, 'UTC')
      AND {after}
    ORDER BY address {order}, at {order}, uuid {order}, version DESC
    LIMIT 1 BY at, uuid
)
WHERE NOT gone
  AND (empty({actions:Array(String)}) OR action IN {actions:Array(String)})
  AND (empty({assets:Array(String)}) OR asset_id IN {assets:Array(String)})
LIMIT {limit:UInt32}
SETTINGS max_threads = 1, max_block_size = 256, optimize_read_in_order = 1, read_in_order_use_buffering = 0
