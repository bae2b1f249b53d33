-- What did the snapshots of markets observe of some histories, from the last before a range of instants to the first after
-- it? The value is null where a snapshot has a market, but no value of it.
WITH
    (
        SELECT max(at)
        FROM snapshot
        WHERE family = 'markets' AND kind IN ('job', 'backfill') AND at < toDateTime({first:UInt32}, 'UTC')
    ) AS since,
    (
        SELECT if(count() = 0, toDateTime({last:UInt32}, 'UTC'), min(at))
        FROM snapshot
        WHERE family = 'markets' AND kind IN ('job', 'backfill') AND at > toDateTime({last:UInt32}, 'UTC')
    ) AS until,
taken AS
(
    SELECT at, max(version) AS version
    FROM snapshot
    WHERE family = 'markets' AND kind IN ('job', 'backfill') AND at >= since AND at <= until
    GROUP BY at
)
SELECT history, asset_id, toUnixTimestamp(observed_at) AS observed_at, max(amount_usd) AS value
FROM
(
    SELECT toString(history) AS history, toString(asset_id) AS asset_id, observed_at, toNullable(value) AS amount_usd
    FROM observation FINAL
    WHERE history IN {histories:Array(String)}
      AND observed_at >= since
      AND observed_at <= until
      AND observed_at IN (SELECT at FROM taken)

    UNION ALL

    SELECT 'deposits_usd', toString(asset_id), observed_at, NULL
    FROM market_lend
    WHERE principal != 0 AND (observed_at, version) IN (SELECT at, version FROM taken)

    UNION ALL

    SELECT 'collateral_usd', toString(asset_id), observed_at, NULL
    FROM market_collateral
    WHERE balance != 0 AND (observed_at, version) IN (SELECT at, version FROM taken)

    UNION ALL

    SELECT 'debt_usd', toString(asset_id), observed_at, NULL
    FROM market_debt
    WHERE balance != 0 AND (observed_at, version) IN (SELECT at, version FROM taken)
)
GROUP BY history, asset_id, observed_at
