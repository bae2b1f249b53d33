-- What was the price of an asset at some seconds, which ascend? Seconds before its first price are left out.
SELECT s.second AS second, o.value AS value
FROM
(
    SELECT 1 AS k, arrayJoin({seconds:Array(UInt32)}) AS second
) AS s
ASOF JOIN
(
    SELECT 1 AS k, toUnixTimestamp(observed_at) AS second, value
    FROM observation FINAL
    WHERE history = 'price'
      AND asset_id = {asset_id:String}
      AND observed_at <= toDateTime({last:UInt32}, 'UTC')
      AND observed_at >=
      (
          SELECT max(observed_at)
          FROM observation
          WHERE history = 'price'
            AND asset_id = {asset_id:String}
            AND observed_at <= toDateTime({first:UInt32}, 'UTC')
      )
) AS o ON s.k = o.k AND s.second >= o.second
