-- What is observed of some histories in a range [start, end), null where there is no value, and has an import of the
-- family brought it?
SELECT
    history,
    asset_id,
    observed_at,
    if(known, toNullable(value), NULL) AS value,
    toBool(version IN (SELECT version FROM snapshot WHERE family = {family:String} AND kind = 'import')) AS imported
FROM observation FINAL
WHERE history IN {histories:Array(String)}
  AND observed_at >= toDateTime({start:UInt32}, 'UTC') AND observed_at < toDateTime({end:UInt32}, 'UTC')
