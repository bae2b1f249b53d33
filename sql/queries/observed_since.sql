-- Which observations of some histories are there at or after an instant, and did they come as values rather than events?
SELECT
    history,
    asset_id,
    toUnixTimestamp(observed_at) AS second,
    value,
    version NOT IN (SELECT version FROM snapshot WHERE family = 'loans' AND at > toDateTime(0, 'UTC')) AS is_imported
FROM observation FINAL
WHERE history IN {histories:Array(String)}
  AND observed_at >= toDateTime({since:UInt32}, 'UTC')
