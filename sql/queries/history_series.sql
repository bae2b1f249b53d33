-- Which series have values up to an instant, in which UTC month did each begin, and what is its last value?
SELECT
    asset_id,
    min(r.cell) AS first_month,
    max(r.observed_at) AS observed_at,
    toString(argMax(r.{value:Identifier}, (r.cell, r.rank))) AS value
FROM {rollup:Identifier} AS r
WHERE r.width = 'month'
GROUP BY asset_id
HAVING first_month <= toDateTime({until:UInt32}, 'UTC')
ORDER BY asset_id
