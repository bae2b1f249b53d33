-- What will a rewrite leave of an import: its own rows, and the first and last second of these and earlier rows in its span?
SELECT
    countIf(version = {version:UInt64}) AS rows,
    toUnixTimestamp(min(second)) AS first_observed_at,
    toUnixTimestamp(max(second)) AS last_observed_at
FROM
(
    SELECT version, observed_at AS second
    FROM observation
    WHERE history IN {histories:Array(String)}
      AND (history, asset_id, observed_at) NOT IN (SELECT history, asset_id, observed_at FROM {removed:Identifier})

    UNION ALL

    SELECT version, at AS second
    FROM account_event
    WHERE {family:String} = 'loans'
)
WHERE version <= {version:UInt64}
  AND second BETWEEN toDateTime({first:UInt32}, 'UTC') AND toDateTime({last:UInt32}, 'UTC')
