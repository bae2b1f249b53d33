-- What is the sum of all events of a kind and two assets, at the second of each?
SELECT toUnixTimestamp(at) AS observed_at, sum(sum(usd)) OVER (ORDER BY at) AS events
FROM event FINAL
WHERE kind = {kind:String}
  AND asset_id IN ({old:String}, {new:String})
  AND NOT gone
GROUP BY at
ORDER BY at
