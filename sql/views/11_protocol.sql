-- A view for each history of the protocol as a whole.

CREATE OR REPLACE VIEW {name}{on_cluster}
(
    observed_at DateTime64(3, 'UTC') COMMENT 'Instant of the observation, in whole seconds',
    {value} Float64 COMMENT '{meaning}',
    value_exact Decimal(38, 18) COMMENT 'The exact value. Convert it with toDecimal256 before you multiply or divide'
)
AS SELECT o.observed_at AS observed_at, toFloat64(o.value) AS {value}, o.value AS value_exact
FROM observation AS o FINAL
WHERE o.history = '{name}' AND o.asset_id = '' AND o.known
COMMENT 'Every known value of history {name}, with corrections applied. The table observation also has instants without a known value';
