-- Which prices of some assets, observed at some instants, did completed runs write?
SELECT asset_id, toUnixTimestamp(observed_at) AS observed_at, argMax(o.value, o.version) AS value
FROM observation AS o
WHERE history = 'price'
  AND asset_id IN {ids:Array(String)}
  AND observed_at IN (SELECT toDateTime(arrayJoin({seconds:Array(UInt32)}), 'UTC'))
  AND version IN
  (
      SELECT version
      FROM snapshot
      WHERE family = 'prices'
        AND version IN
        (
            SELECT version
            FROM observation
            WHERE history = 'price'
              AND asset_id IN {ids:Array(String)}
              AND observed_at IN (SELECT toDateTime(arrayJoin({seconds:Array(UInt32)}), 'UTC'))
        )
  )
GROUP BY asset_id, observed_at
