-- Which rows of a history does a rewrite take out, in a range of time? With those of the total, which have an empty asset id.
SELECT
    o.asset_id AS asset_id,
    a.symbol AS symbol,
    toDateTime64(o.observed_at, 3, 'UTC') AS observed_at,
    toFloat64(o.value) AS {value},
    o.value AS value_exact
FROM observation AS o FINAL
LEFT JOIN (SELECT id, argMax(symbol, (defined_at, version)) AS symbol FROM asset_definition GROUP BY id) AS a ON a.id = o.asset_id
WHERE o.history = '{history}' AND o.known
  AND o.asset_id IN (SELECT asset_id FROM {removed} WHERE history = '{history}')
  AND o.observed_at >= toDateTime({since:UInt32}, 'UTC') AND o.observed_at < toDateTime({until:UInt32}, 'UTC')
  AND (o.asset_id, o.observed_at) IN (SELECT asset_id, observed_at FROM {removed} WHERE history = '{history}')
