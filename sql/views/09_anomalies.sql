-- Values that may be wrong.

CREATE OR REPLACE VIEW anomalies_since{on_cluster}
AS WITH
{instant},
listed AS
(
    SELECT history, asset_id, observed_at, what, value, before_at, before
    FROM doubt FINAL
    WHERE observed_at >= instant
),
stored AS
(
    SELECT history, asset_id, observed_at, value
    FROM observation FINAL
    WHERE known AND (history, asset_id, observed_at) IN
    (
        SELECT history, asset_id, observed_at FROM listed
        UNION ALL
        SELECT history, asset_id, assumeNotNull(before_at) FROM listed WHERE before_at IS NOT NULL
    )
)
SELECT
    toDateTime64(d.observed_at, 3, 'UTC') AS observed_at,
    toString(d.what) AS what,
    toString(d.history) AS history,
    toString(d.asset_id) AS asset_id,
    toString(a.symbol) AS symbol,
    toFloat64(d.value) AS value,
    d.value AS value_exact,
    toFloat64(d.before) AS before,
    d.before AS before_exact,
    CAST(d.before_at, 'Nullable(DateTime64(3, \'UTC\'))') AS before_at
FROM listed AS d
LEFT JOIN (SELECT id, argMax(symbol, (defined_at, version)) AS symbol FROM asset_definition GROUP BY id) AS a ON a.id = d.asset_id
WHERE (d.history, d.asset_id, d.observed_at, d.value) IN (SELECT history, asset_id, observed_at, value FROM stored)
  AND (d.before_at IS NULL
    OR (d.history, d.asset_id, assumeNotNull(d.before_at), assumeNotNull(d.before)) IN
       (SELECT history, asset_id, observed_at, value FROM stored))
SETTINGS join_use_nulls = 0
COMMENT 'Values since an instant that may be wrong, with the columns of anomalies: FROM anomalies_since(time = \'2026-03-01T00:00:00Z\')';

CREATE OR REPLACE VIEW anomalies{on_cluster}
(
    observed_at DateTime64(3, 'UTC') COMMENT 'Instant of the value',
    what String COMMENT 'zero (a price of 0), jump (of a price, by more than a factor of 3), or fall (of a total, by more than half)',
    history String COMMENT 'Name of the history that has the value, such as price or deposits_usd',
    asset_id String COMMENT 'Asset id; the empty string is the total over all assets',
    symbol String COMMENT 'Symbol of the asset, as it is defined now; empty for the total',
    value Float64 COMMENT 'The value, in USD',
    value_exact Decimal(38, 18) COMMENT 'The same value, exact',
    before Nullable(Float64) COMMENT 'The value before, in USD; null if none is known',
    before_exact Nullable(Decimal(38, 18)) COMMENT 'The same value, exact',
    before_at Nullable(DateTime64(3, 'UTC')) COMMENT 'Instant of that value'
)
AS SELECT observed_at, what, history, asset_id, symbol, value, value_exact, before, before_exact, before_at
FROM anomalies_since(time = 0)
COMMENT 'Values of snapshots that may be wrong; those that were corrected, or the value before, are gone';
