-- Which observations of some histories are there at or after an instant, and did they come as values rather than events?
SELECT
    history,
    asset_id,
    toUnixTimestamp(observed_at) AS second,
    value,
    toBool(version NOT IN ({made_from_events})) AS is_imported
FROM observation FINAL
WHERE history IN {histories:Array(String)}
  AND observed_at >= toDateTime({since:UInt32}, 'UTC')
