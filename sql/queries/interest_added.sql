-- What did the lend markets owe, and how many receipts were out, at the complete snapshots in a range [start, end),
-- oldest first?
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
          WHERE family = 'markets'
            AND kind IN ('job', 'backfill')
            AND at >= toDateTime({start:UInt32}, 'UTC')
            AND at < toDateTime({end:UInt32}, 'UTC')
      )
    ORDER BY asset_id, observed_at
)
GROUP BY asset_id
ORDER BY asset_id
