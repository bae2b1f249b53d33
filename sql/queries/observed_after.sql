-- When was each of some series observed first at or after a second of its own? Nothing of those that were not.
SELECT toString(o.history) AS what, toString(o.asset_id) AS asset_id, s.3 AS until, min(toUnixTimestamp(observed_at)) AS next
FROM observation AS o
INNER JOIN
(
    SELECT arrayJoin(arrayZip({histories:Array(String)}, {ids:Array(String)}, {untils:Array(UInt32)})) AS s
) AS series ON toString(o.history) = s.1 AND toString(o.asset_id) = s.2
WHERE observed_at >= toDateTime(s.3, 'UTC')
GROUP BY what, asset_id, until
