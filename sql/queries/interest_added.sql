-- What did lenders of each market earn from one complete snapshot to the next, of those after one instant and up to
-- another? The first and the last of these snapshots come with it, and the pairs whose product may exceed 256 bits, which
-- are not in the sum.
SELECT
    asset_id,
    argMin([toString(principal), toString(receipt_supply)], observed_at) AS first,
    argMax([toString(principal), toString(receipt_supply)], observed_at) AS last,
    max(observed_at) AS last_at,
    toString(sumIf(redeemed - principal_before, NOT is_large AND redeemed > principal_before)) AS added,
    groupArrayIf(
        [toString(principal_before), toString(receipts_before), toString(principal), toString(receipt_supply)],
        is_large
    ) AS large
FROM
(
    SELECT
        asset_id,
        observed_at,
        principal,
        receipt_supply,
        lagInFrame(principal) OVER snapshots AS principal_before,
        lagInFrame(receipt_supply) OVER snapshots AS receipts_before,
        bitShiftRight(bitOr(receipts_before, principal), 128) > 0 AS is_large,
        if(receipt_supply = 0, 0, intDiv(receipts_before * principal, greatest(receipt_supply, 1))) AS redeemed
    FROM market_lend FINAL
    WHERE observed_at > toDateTime({after:UInt32}, 'UTC')
      AND observed_at <= toDateTime({until:UInt32}, 'UTC')
      AND (observed_at, version) IN
      (
          SELECT at, version
          FROM snapshot FINAL
          WHERE family = 'markets'
            AND kind IN ('job', 'backfill')
            AND at > toDateTime({after:UInt32}, 'UTC')
            AND at <= toDateTime({until:UInt32}, 'UTC')
      )
    WINDOW snapshots AS (PARTITION BY asset_id ORDER BY observed_at ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)
)
GROUP BY asset_id
ORDER BY asset_id
