-- What is observed of some histories in a range, and has an import of the family brought it?
SELECT
    history,
    asset_id,
    observed_at,
    value,
    toBool(version IN (SELECT version FROM snapshot WHERE family = {family:String} AND kind = 'import')) AS imported
FROM observation FINAL
WHERE history IN {histories:Array(String)}
  AND observed_at BETWEEN toDateTime({start:UInt32}, 'UTC') AND toDateTime({end:UInt32}, 'UTC')
