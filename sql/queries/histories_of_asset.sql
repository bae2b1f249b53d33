-- How many observations of each history are of an asset, and at how many of their seconds has another one, too?
SELECT
    history,
    count() AS rows,
    countIf((history, observed_at) IN (SELECT history, observed_at FROM observation WHERE asset_id = {new:String})) AS same
FROM observation FINAL
WHERE asset_id = {old:String}
GROUP BY history
ORDER BY history
