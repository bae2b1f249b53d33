-- What did the snapshots of markets observe of some histories, from the last before a range [start, end) to the first
-- after it? The value is null where a snapshot has a market, but no value of it.
WITH
    (
        SELECT max(at)
        FROM snapshot
        WHERE family = 'markets' AND kind IN ('job', 'backfill') AND at < toDateTime({start:UInt32}, 'UTC')
    ) AS since,
    (
        SELECT if(count() = 0, toDateTime({end:UInt32}, 'UTC'), min(at) + 1)
        FROM snapshot
        WHERE family = 'markets' AND kind IN ('job', 'backfill') AND at >= toDateTime({end:UInt32}, 'UTC')
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
    WHERE family = 'markets' AND kind IN ('job', 'backfill') AND at >= since AND at < until
    GROUP BY at
) AS taken ON taken.at = o.observed_at
WHERE o.version IN (0, taken.version)
GROUP BY history, asset_id, o.observed_at
