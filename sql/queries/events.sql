-- Events of addresses, and their sums.

-- name: list_events
-- The next events of all addresses before an instant: every matching row of an event, the greatest version first. The
-- sort key begins with the address, so the columns of conditions are read whole: a few bytes of each event. The page
-- ends with the second of its last row, and the other columns are read for these rows only.
SELECT {columns}, version, removed
FROM event_version
PREWHERE at >= toDateTime({start:UInt32}, 'UTC') AND at < toDateTime({end:UInt32}, 'UTC')
  AND (empty({actions:Array(String)}) OR action IN {actions:Array(String)})
  AND (empty({assets:Array(String)}) OR asset_id IN {assets:Array(String)})
  AND at {within} (
      SELECT {furthest}
      FROM
      (
          SELECT at
          FROM event_version
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

-- name: list_address_events
-- The next events of an address before an instant: the greatest version of each event, unless it removes the event.
-- Rows are read in the order of the sort key, in small blocks and without reading ahead, so that a page reads few rows
-- beyond its own.
SELECT {columns}
FROM
(
    SELECT *
    FROM event_version
    WHERE {whose}
      AND at >= toDateTime({start:UInt32}, 'UTC') AND at < toDateTime({end:UInt32}, 'UTC')
      AND {after}
    ORDER BY address {order}, at {order}, uuid {order}, version DESC
    LIMIT 1 BY at, uuid
)
WHERE NOT removed
  AND (empty({actions:Array(String)}) OR action IN {actions:Array(String)})
  AND (empty({assets:Array(String)}) OR asset_id IN {assets:Array(String)})
LIMIT {limit:UInt32}
SETTINGS max_threads = 1, max_block_size = 256, optimize_read_in_order = 1, read_in_order_use_buffering = 0

-- name: find_event
-- The instant of an event, of an address or of any. The index on uuid leaves few rows to read. A removed event keeps
-- its place, so that a list continues after it.
SELECT at
FROM event_version
WHERE {whose}
  AND at < toDateTime({end:UInt32}, 'UTC')
  AND uuid = {uuid:String}
ORDER BY removed, version DESC
LIMIT 1
SETTINGS max_threads = 1, max_block_size = 256

-- name: count_events
-- The number of events before an instant, of an address or of all.
SELECT count() AS count
FROM event_version FINAL
WHERE {whose}
  AND at >= toDateTime({start:UInt32}, 'UTC') AND at < toDateTime({end:UInt32}, 'UTC')
  AND NOT removed
  AND (empty({actions:Array(String)}) OR action IN {actions:Array(String)})
  AND (empty({assets:Array(String)}) OR asset_id IN {assets:Array(String)})

-- name: find_stored_events
-- The stored events of a range of time or with some ids, and their origin: the greatest version of each event at an
-- instant, unless it removes the event.
SELECT {columns}, origin
FROM
(
    SELECT *
    FROM event_version
    WHERE {which}
    ORDER BY version DESC
    LIMIT 1 BY address, at, uuid
)
WHERE NOT removed

-- name: read_event_versions
-- The last version of each event of some addresses at some seconds.
SELECT address, at, uuid, max(version) AS version
FROM event_version
WHERE address IN {addresses:Array(String)}
  AND toUnixTimestamp(at) IN {seconds:Array(UInt32)}
GROUP BY address, at, uuid

-- name: list_summed_events
-- The summed events at or after an instant; a liquidation counts with its repaid debt. The sort key begins with the
-- address, so the times of all events are read, and the other columns of matching events.
SELECT
    uuid,
    action,
    asset_id,
    toUnixTimestamp(at) AS second,
    ifNull(usd, 0) AS usd,
    toBool(origin != 'source') AS of_file
FROM event_version FINAL
PREWHERE at >= toDateTime({start:UInt32}, 'UTC')
WHERE action IN {actions:Array(String)}
  AND leg != 'collateral'
  AND NOT removed
ORDER BY at, uuid

-- name: count_unpriced_loans
-- The number of loans before an instant without a value. FINAL reads only events that lacked a value in some version.
SELECT count() AS count
FROM event_version FINAL
WHERE (address, at, uuid) IN
    (
        SELECT address, at, uuid
        FROM event_version
        WHERE action = 'borrow' AND usd IS NULL AND at < toDateTime({end:UInt32}, 'UTC')
    )
  AND action = 'borrow'
  AND usd IS NULL
  AND amount != 0
  AND NOT removed

-- name: read_last_sums
-- The last value of each series of cumulative histories before an instant, however long ago. It reads few rows: rollups
-- of months before the instant's month, of days before its day, of 15 minutes before its 15 minutes, then observations.
SELECT history, asset_id, argMax(p.close, p.last_at) AS value
FROM
(
    SELECT history, asset_id, last_at, close
    FROM rollup FINAL
    WHERE history IN {histories:Array(String)}
      AND ((width = 'month' AND start < toDateTime({month:UInt32}, 'UTC'))
        OR (width = 'day' AND start >= toDateTime({month:UInt32}, 'UTC') AND start < toDateTime({day:UInt32}, 'UTC'))
        OR (width = '15min' AND start >= toDateTime({day:UInt32}, 'UTC')
            AND start < toDateTime({fifteen_minutes:UInt32}, 'UTC')))

    UNION ALL

    SELECT history, asset_id, observed_at AS last_at, value AS close
    FROM observation FINAL
    WHERE history IN {histories:Array(String)}
      AND observed_at >= toDateTime({fifteen_minutes:UInt32}, 'UTC')
      AND observed_at < toDateTime({before:UInt32}, 'UTC')
) AS p
GROUP BY history, asset_id
ORDER BY history, asset_id

-- name: list_sums_since
-- The observations of histories of loans at or after an instant: whether they were given instead of summed from events,
-- and whether a source stated them.
SELECT
    history,
    asset_id,
    toUnixTimestamp(observed_at) AS second,
    value,
    toBool((version, history) IN ({list_given_values})) AS is_given,
    toBool((version, history, observed_at) IN
    (
        SELECT version, arrayJoin(reported_histories), at
        FROM snapshot
        WHERE dataset = 'loans' AND at >= toDateTime({start:UInt32}, 'UTC')
    )) AS is_stated
FROM observation FINAL
WHERE history IN {histories:Array(String)}
  AND observed_at >= toDateTime({start:UInt32}, 'UTC')

-- name: list_given_values
-- The versions of loans with given values: imported, or stated by a source. All others are sums of events.
SELECT version, arrayJoin(if(kind = 'import', ['loans_originated', 'liquidations', 'flash_loans'], reported_histories)) AS history
FROM snapshot
WHERE dataset = 'loans'
  AND ((kind = 'import' AND at = toDateTime(0, 'UTC')) OR notEmpty(reported_histories))
