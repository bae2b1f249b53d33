-- Rows of snapshots, of markets and of swap contracts.

-- name: read_snapshot_rows
-- The rows of a table for a complete snapshot: rows of the commit that the ledger lists. Dead or overtaken commits may
-- have left others. A batch that was sent twice has duplicates until they are merged.
SELECT {columns}
FROM {table:Identifier}
WHERE observed_at = toDateTime({at:UInt32}, 'UTC')
  AND version =
  (
      SELECT max(version)
      FROM snapshot
      WHERE dataset = {dataset:String} AND at = toDateTime({at:UInt32}, 'UTC') AND kind IN ('job', 'backfill')
  )
  AND {only}
ORDER BY {key}
LIMIT 1 BY {key}

-- name: read_rows_of_snapshots
-- The rows of a table for some complete snapshots, given by instant and version, each as from `read_snapshot_rows`.
SELECT observed_at, {columns}
FROM {table:Identifier}
WHERE (observed_at, version) IN
(
    SELECT toDateTime(pair.1, 'UTC'), pair.2
    FROM (SELECT arrayJoin(arrayZip({seconds:Array(UInt32)}, {versions:Array(UInt64)})) AS pair)
)
  AND {only}
ORDER BY observed_at, {key}
LIMIT 1 BY observed_at, {key}

-- name: read_market_values
-- The observations of snapshots of markets, from the last before a range [start, end) to the first after it. The value
-- is null if a snapshot has a market, but no value of it.
WITH
    (
        SELECT max(at)
        FROM snapshot
        WHERE dataset = 'markets' AND kind IN ('job', 'backfill') AND at < toDateTime({start:UInt32}, 'UTC')
    ) AS since,
    (
        SELECT if(count() = 0, toDateTime({end:UInt32}, 'UTC'), min(at) + 1)
        FROM snapshot
        WHERE dataset = 'markets' AND kind IN ('job', 'backfill') AND at >= toDateTime({end:UInt32}, 'UTC')
    ) AS until
SELECT history, asset_id, toUnixTimestamp(o.observed_at) AS observed_at, max(o.usd) AS value
FROM
(
    SELECT toString(history) AS history, toString(asset_id) AS asset_id, observed_at, toUInt64(0) AS version,
        if(known, toNullable(value), NULL) AS usd
    FROM observation FINAL
    WHERE history IN {histories:Array(String)} AND observed_at >= since AND observed_at < until

    UNION ALL

    SELECT 'deposits_usd', toString(asset_id), observed_at, version, NULL
    FROM market_lend
    WHERE principal != 0 AND observed_at >= since AND observed_at < until
      AND asset_id NOT IN
        (SELECT id FROM asset_definition GROUP BY id HAVING argMax(kind, (defined_at, version)) = 'protocol_receipt_token')

    UNION ALL

    SELECT 'collateral_usd', toString(asset_id), observed_at, version, NULL
    FROM market_collateral
    WHERE balance != 0 AND observed_at >= since AND observed_at < until

    UNION ALL

    SELECT 'debt_usd', toString(asset_id), observed_at, version, NULL
    FROM market_debt
    WHERE balance != 0 AND observed_at >= since AND observed_at < until
) AS o
INNER JOIN
(
    SELECT at, max(version) AS version
    FROM snapshot
    WHERE dataset = 'markets' AND kind IN ('job', 'backfill') AND at >= since AND at < until
    GROUP BY at
) AS taken ON taken.at = o.observed_at
WHERE o.version IN (0, taken.version)
GROUP BY history, asset_id, o.observed_at

-- name: read_lent_amounts
-- Principal and receipts of lend markets at the complete snapshots in a range [start, end), oldest first.
SELECT
    asset_id,
    max(observed_at) AS last_at,
    groupArray(toString(principal)) AS principals,
    groupArray(toString(receipt_supply)) AS receipts
FROM
(
    SELECT asset_id, observed_at, principal, receipt_supply
    FROM market_lend FINAL
    WHERE observed_at >= toDateTime({start:UInt32}, 'UTC')
      AND observed_at < toDateTime({end:UInt32}, 'UTC')
      AND (observed_at, version) IN
      (
          SELECT at, version
          FROM snapshot FINAL
          WHERE dataset = 'markets'
            AND kind IN ('job', 'backfill')
            AND at >= toDateTime({start:UInt32}, 'UTC')
            AND at < toDateTime({end:UInt32}, 'UTC')
      )
    ORDER BY asset_id, observed_at
)
GROUP BY asset_id
ORDER BY asset_id
