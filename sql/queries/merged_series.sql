-- What are the observations of two assets in a history, which of both is each of, and was it given as a value rather than
-- summed up from events?
SELECT
    toBool(asset_id = {old:String}) AS is_old,
    toUnixTimestamp(observed_at) AS observed_at,
    value,
    toBool((version, history) IN ({given_values})) AS is_imported
FROM observation FINAL
WHERE history = {history:String}
  AND asset_id IN ({old:String}, {new:String})
ORDER BY observation.observed_at
