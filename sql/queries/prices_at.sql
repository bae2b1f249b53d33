-- What was the price of some assets at some seconds, which ascend, and when was it observed? Seconds before an asset's first
-- price are left out.
SELECT s.asset_id AS asset_id, s.second AS second, o.second AS observed_at, o.value AS value
FROM
(
    SELECT arrayJoin({ids:Array(String)}) AS asset_id, arrayJoin({seconds:Array(UInt32)}) AS second
) AS s
ASOF JOIN
(
    SELECT toString(asset_id) AS asset_id, toUnixTimestamp(observed_at) AS second, value
    FROM observation FINAL
    WHERE history = 'price'
      AND asset_id IN {ids:Array(String)}
      AND observed_at <= toDateTime({last:UInt32}, 'UTC')
      AND (observed_at > toDateTime({first:UInt32}, 'UTC') OR (asset_id, observed_at) IN
      (
          SELECT asset_id, max(observed_at)
          FROM observation
          WHERE history = 'price'
            AND asset_id IN {ids:Array(String)}
            AND observed_at <= toDateTime({first:UInt32}, 'UTC')
          GROUP BY asset_id
      ))
) AS o ON s.asset_id = o.asset_id AND s.second >= o.second
