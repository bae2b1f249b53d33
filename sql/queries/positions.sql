-- Positions of addresses, by items.

-- name: list_position_items
-- The items of addresses at an instant. Rows count once the ledger lists their commit.
SELECT *
FROM
(
    SELECT {columns}, closed
    FROM position_change
    WHERE address IN {addresses:Array(String)}
      AND observed_at <= toDateTime({last:UInt32}, 'UTC')
      AND (observed_at, version) IN ({commits})
    ORDER BY {key}, observed_at DESC
    LIMIT 1 BY {key}
)
WHERE NOT closed

-- name: find_commits_of_addresses
-- The snapshots, and their versions, in which rows of addresses may have been written, up to an instant.
SELECT at, version
FROM snapshot
WHERE dataset = 'positions'
  AND at IN
  (
      SELECT observed_at
      FROM position_change
      WHERE address IN {addresses:Array(String)} AND observed_at <= toDateTime({last:UInt32}, 'UTC')
  )

-- name: list_borrowing_items
-- The collateral, debt and stakes of the borrow accounts of a range of addresses at an instant. Rows count once the
-- ledger lists their commit.
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
-- The last row of each item at or before the start of a range [start, end), and all later rows in it, for some kinds of
-- items and a range of addresses. Rows count once the ledger lists their commit.
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
-- The last row of each item of an address in each part of a range. Parts begin at `starts`, which ascend from 0, and
-- the last part ends at `last`. Rows count once the ledger lists their commit.
SELECT {columns}, closed, observed_at
FROM position_change
WHERE address IN {addresses:Array(String)}
  AND observed_at <= toDateTime({last:UInt32}, 'UTC')
  AND (observed_at, version) IN ({commits})
ORDER BY {key}, observed_at DESC
LIMIT 1 BY {key}, roundDown(toUnixTimestamp(observed_at), {starts:Array(UInt32)})

-- name: read_digests
-- The last digest of each address, and whether its commit is complete.
SELECT address, digest, version IN (SELECT version FROM snapshot WHERE dataset = 'positions') AS complete
FROM position_digest FINAL

-- name: reset_digests
-- Makes the next job of positions compare all items again: these digests belong to no commit.
INSERT INTO position_digest (address, observed_at, digest, version)
SELECT DISTINCT address, toDateTime(0, 'UTC'), 0, {version:UInt64}
FROM position_change

-- name: sample_addresses
-- One in `one_of` addresses that have had a position: bounds that divide all addresses into ranges.
SELECT DISTINCT address
FROM position_digest
WHERE cityHash64(address) % {one_of:UInt32} = 0
ORDER BY address
