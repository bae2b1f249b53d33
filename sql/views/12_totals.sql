-- Totals over all assets.

CREATE OR REPLACE VIEW totals{on_cluster}
(
    history LowCardinality(String) COMMENT 'Name of the history, such as debt_usd',
    observed_at DateTime64(3, 'UTC') COMMENT 'Instant of the observation, in whole seconds',
    usd Float64 COMMENT 'The total, in USD',
    value_exact Decimal(38, 18) COMMENT 'The exact value. Convert it with toDecimal256 before you multiply or divide'
)
AS SELECT t.history AS history, t.observed_at AS observed_at, toFloat64(t.total) AS usd, t.total AS value_exact
FROM
(
    SELECT history, observed_at, value AS total
    FROM observation FINAL
    WHERE history IN ({stored}) AND asset_id = '' AND known

    UNION ALL

    -- A snapshot of markets has a row for each asset that has, or just had, such a value, known or not. Other instants may
    -- have imported values of some assets. A total beyond 38 digits is unknown, as over HTTP.
    SELECT history, observed_at, toDecimal128(sum(toDecimal256(value, 18)) AS exact, 18) AS total
    FROM observation FINAL
    WHERE history IN ({summed}) AND observed_at IN
    (
        SELECT at
        FROM snapshot
        WHERE dataset = 'markets' AND kind IN ('job', 'backfill') AND at <= now('UTC') + INTERVAL 60 SECOND
    )
    GROUP BY history, observed_at
    HAVING min(known) AND exact < toDecimal256(100000000000000000000, 18)
) AS t
COMMENT 'Every total over all assets in USD, such as tvl and debt_usd, with corrections applied. Instants at which a part is unknown have no row';
