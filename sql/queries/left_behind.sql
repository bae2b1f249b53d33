-- Which observations of a family, of the day before its newest one, have runs written that have died: the oldest of them,
-- and how many? All that runs before a version have written, if the family has no completed run.
WITH (SELECT (max(version), max(last_observed_at)) FROM snapshot_head WHERE family = {family:String}) AS head
SELECT toUnixTimestamp(minOrNull(observed_at)) AS oldest, count() AS rows
FROM observation
WHERE history IN {histories:Array(String)}
  AND version > head.1
  AND version < {version:UInt64}
  AND (head.1 = 0 OR (observed_at <= head.2 AND observed_at > head.2 - INTERVAL 1 DAY))
