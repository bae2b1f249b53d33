-- A view for each history. A condition on asset_id and observed_at reads no more rows of the view than of the table.

CREATE OR REPLACE VIEW {name}
(
    asset_id LowCardinality(String) COMMENT 'Asset id; the empty string is the total over all assets',
    symbol LowCardinality(String) COMMENT 'Symbol of the asset, as it is defined now; empty for the total',
    observed_at DateTime64(3, 'UTC') COMMENT 'Instant of the observation, whole seconds',
    {value} Decimal(38, 18) COMMENT '{meaning}'
)
AS SELECT o.asset_id AS asset_id, a.symbol AS symbol, o.observed_at AS observed_at, o.value AS {value}
FROM observation AS o FINAL
LEFT JOIN (SELECT id, argMax(symbol, version) AS symbol FROM asset GROUP BY id) AS a ON a.id = o.asset_id
WHERE o.history = '{name}'
SETTINGS join_use_nulls = 0
COMMENT 'Every observation of history {name}, with corrections applied';
