-- A view for each history of the protocol as a whole.

CREATE OR REPLACE VIEW {name}{on_cluster}
(
    observed_at DateTime64(3, 'UTC') COMMENT 'Instant of the observation, whole seconds',
    {value} Float64 COMMENT '{meaning}',
    value_exact Decimal(38, 18) COMMENT 'The same value, exact: convert it with toDecimal256 before you multiply or divide'
)
AS SELECT o.observed_at AS observed_at, toFloat64(o.value) AS {value}, o.value AS value_exact
FROM observation AS o FINAL
WHERE o.history = '{name}' AND o.asset_id = '' AND o.known
COMMENT 'Every value of history {name}, with corrections applied; where a snapshot does not know it, there is a row in observation that is not known';
