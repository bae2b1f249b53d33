-- Who owes most of each asset, and what part of all its debt? Set `moment` to an earlier instant to see who owed most then.
WITH now('UTC') AS moment,
owed AS
(
    SELECT address, asset_id, sum(shares) AS shares
    FROM
    (
        -- An item of a position holds from observed_at until its next row; one that is closed is gone.
        SELECT address, asset_id, argMax((amount, closed), observed_at) AS last, last.1 AS shares
        FROM position
        WHERE kind = 'debt'
          AND (observed_at, version) IN (SELECT at, version FROM snapshot WHERE family = 'positions' AND at <= moment)
        GROUP BY address, account_index, asset_id, item
        HAVING NOT last.2
    )
    GROUP BY address, asset_id
)
SELECT asset_id, address, shares, toFloat64(shares) / sum(toFloat64(shares)) OVER (PARTITION BY asset_id) AS part
FROM owed
ORDER BY asset_id, shares DESC, address
LIMIT 3 BY asset_id;
