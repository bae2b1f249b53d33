-- Which values from a start (unix second) to before an end may be wrong?
SELECT what, history, symbol, asset_id, toUnixTimestamp(observed_at) AS at, value, before
FROM anomalies(start = {start:UInt32}, end = {end:UInt32}, factor = 3)
ORDER BY history != 'price', observed_at, history, asset_id
