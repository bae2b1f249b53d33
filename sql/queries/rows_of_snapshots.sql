-- Which rows does a table have for some complete snapshots, given by instant and version? As `snapshot_rows` has them for
-- one.
SELECT observed_at, {columns}
FROM {table:Identifier}
WHERE (observed_at, version) IN
(
    SELECT toDateTime(pair.1, 'UTC'), pair.2
    FROM (SELECT arrayJoin(arrayZip({seconds:Array(UInt32)}, {versions:Array(UInt64)})) AS pair)
)
  AND {only}
ORDER BY observed_at, {key}
LIMIT 1 BY observed_at, {key}
