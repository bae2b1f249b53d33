-- When had every series of a history that was observed after a second been observed? 0 if none was.
SELECT toUnixTimestamp(max(first_at)) AS next
FROM
(
    SELECT min(observed_at) AS first_at
    FROM observation
    WHERE history = {history:String} AND observed_at > toDateTime({after:UInt32}, 'UTC')
    GROUP BY asset_id
)
