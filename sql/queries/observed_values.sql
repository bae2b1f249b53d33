-- What are the values of some histories at an instant?
SELECT history, asset_id, value
FROM observation FINAL
WHERE history IN {histories:Array(String)}
  AND observed_at = toDateTime({at:UInt32}, 'UTC')
ORDER BY history, asset_id
