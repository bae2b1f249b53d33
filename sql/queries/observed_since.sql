-- Which observations of some histories of loans are there at or after an instant? Were they given as such, rather than
-- summed up from events, and did a source state them?
SELECT
    history,
    asset_id,
    toUnixTimestamp(observed_at) AS second,
    value,
    toBool((version, history) IN ({given_values})) AS is_given,
    toBool((version, history, observed_at) IN
    (
        SELECT version, arrayJoin(stated), at
        FROM snapshot
        WHERE family = 'loans' AND at >= toDateTime({since:UInt32}, 'UTC')
    )) AS is_stated
FROM observation FINAL
WHERE history IN {histories:Array(String)}
  AND observed_at >= toDateTime({since:UInt32}, 'UTC')
