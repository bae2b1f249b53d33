-- What was the last value of each series before the beginning of a UTC day, however long ago?
SELECT asset_id, last_at AS observed_at, close AS value, version AS rank
FROM cell
WHERE history = {history:String}
  AND width = 'day'
  AND asset_id IN {ids:Array(String)}
  AND cell < toDateTime({before:UInt32}, 'UTC')
ORDER BY asset_id, cell DESC, version DESC
LIMIT 1 BY asset_id
