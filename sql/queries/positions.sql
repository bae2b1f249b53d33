-- Positions of addresses, item by item.

-- name: list_position_items
-- Which items did the given addresses have at an instant? Rows count once the ledger lists their run.
SELECT *
FROM
(
    SELECT {columns}, closed
    FROM position_change
    WHERE address IN {addresses:Array(String)}
      AND observed_at <= toDateTime({at:UInt32}, 'UTC')
      AND (observed_at, version) IN
      (
          SELECT at, version
          FROM snapshot
          WHERE dataset = 'positions'
            AND at IN
            (
                SELECT observed_at
                FROM position_change
                WHERE address IN {addresses:Array(String)} AND observed_at <= toDateTime({at:UInt32}, 'UTC')
            )
      )
    ORDER BY {key}, observed_at DESC
    LIMIT 1 BY {key}
)
WHERE NOT closed

-- name: list_borrowing_items
-- What had the borrow accounts of a range of addresses posted, owed and staked at an instant? Rows count once the ledger
-- lists their run.
SELECT address, kind, account_index, asset_id, pool, toString(amount) AS amount, liquidation_ltv
FROM
(
    SELECT {key}, amount, liquidation_ltv, closed
    FROM position_change
    WHERE kind IN {kinds:Array(String)}
      AND address >= {first:String}
      AND address < {end:String}
      AND observed_at <= toDateTime({at:UInt32}, 'UTC')
      AND (observed_at, version) IN (SELECT at, version FROM snapshot WHERE dataset = 'positions')
    ORDER BY {key}, observed_at DESC
    LIMIT 1 BY {key}
)
WHERE NOT closed

-- name: list_item_changes
-- Which items of some kinds, of a range of addresses, were there at the start of a range [start, end), or before, and
-- which of them changed in it? Rows count once the ledger lists their run.
SELECT {columns}, observed_at, closed
FROM position_change
WHERE kind IN {kinds:Array(String)}
  AND address >= {first:String}
  AND address < {before:String}
  AND observed_at < toDateTime({end:UInt32}, 'UTC')
  AND (observed_at, version) IN (SELECT at, version FROM snapshot WHERE dataset = 'positions')
ORDER BY {key}, observed_at DESC
LIMIT 1 BY {key}, greatest(observed_at, toDateTime({start:UInt32}, 'UTC'))

-- name: list_position_changes
-- Which items did an address have at the end of each part of a range, where they changed in it? Parts begin at `starts`,
-- which ascend from 0, and the last one ends at `last`. Rows count once the ledger lists their run.
SELECT {columns}, closed, observed_at
FROM position_change
WHERE address = {address:String}
  AND observed_at <= toDateTime({last:UInt32}, 'UTC')
  AND (observed_at, version) IN
  (
      SELECT at, version
      FROM snapshot
      WHERE dataset = 'positions'
        AND at IN
        (
            SELECT observed_at
            FROM position_change
            WHERE address = {address:String} AND observed_at <= toDateTime({last:UInt32}, 'UTC')
        )
  )
ORDER BY {key}, observed_at DESC
LIMIT 1 BY {key}, roundDown(toUnixTimestamp(observed_at), {starts:Array(UInt32)})

-- name: read_digests
-- Which digest of each address was written last, and was its run completed?
SELECT address, digest, version IN (SELECT version FROM snapshot WHERE dataset = 'positions') AS complete
FROM position_digest FINAL

-- name: reset_digests
-- Makes a job of positions compare all items of all addresses again: these digests are of no run.
INSERT INTO position_digest (address, observed_at, digest, version)
SELECT DISTINCT address, toDateTime(0, 'UTC'), 0, {version:UInt64}
FROM position_change

-- name: sample_addresses
-- Which addresses divide all that have had a position into ranges of about so many?
SELECT DISTINCT address
FROM position_digest
WHERE cityHash64(address) % {one_of:UInt32} = 0
ORDER BY address

-- name: find_example_address
-- Which address, of those that come first, has the most kinds of items? Documentation shows requests for it.
SELECT address
FROM (SELECT address, kind FROM position_change WHERE observed_at <= toDateTime({at:UInt32}, 'UTC') LIMIT 50000)
GROUP BY address
ORDER BY uniqExact(kind) DESC, address
LIMIT 1
SETTINGS max_threads = 1
