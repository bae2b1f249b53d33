-- A view for each history by asset. Conditions on asset_id and observed_at are as selective as on the table.

CREATE OR REPLACE VIEW {name}{on_cluster}
(
    asset_id LowCardinality(String) COMMENT 'Asset id',
    symbol LowCardinality(String) COMMENT 'Symbol of the asset, as it is defined now',
    observed_at DateTime64(3, 'UTC') COMMENT 'Instant of the observation, in whole seconds',
    {value} Float64 COMMENT '{meaning}',
    value_exact Decimal(38, 18) COMMENT 'The exact value. Convert it with toDecimal256 before you multiply or divide'
)
AS SELECT o.asset_id AS asset_id, a.symbol AS symbol, o.observed_at AS observed_at,
    toFloat64(o.value) AS {value}, o.value AS value_exact
FROM observation AS o FINAL
LEFT JOIN (SELECT id, argMax(symbol, (defined_at, version)) AS symbol FROM asset_definition GROUP BY id) AS a ON a.id = o.asset_id
WHERE o.history = '{name}' AND o.asset_id != '' AND o.known
SETTINGS join_use_nulls = 0
COMMENT 'Every known value of history {name} of each asset, with corrections applied. The table observation also has instants without a known value';
