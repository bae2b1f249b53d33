-- Which values have imports brought to some histories of loans, up to an instant: of each series, in each interval between
-- given instants, the last with its second, and the least? `since` is the instant after which an interval begins. Neither
-- snapshots nor imported events count, since their sums are made from events.
SELECT
    history,
    asset_id,
    roundDown(toUnixTimestamp(observed_at) - 1, {instants:Array(UInt32)}) AS since,
    toUnixTimestamp(max(observed_at)) AS second,
    argMax(value, observed_at) AS last,
    min(value) AS least
FROM observation FINAL
WHERE history IN {histories:Array(String)}
  AND observed_at > toDateTime({after:UInt32}, 'UTC')
  AND observed_at <= toDateTime({until:UInt32}, 'UTC')
  AND observed_at NOT IN
  (
      SELECT at
      FROM snapshot
      WHERE family = 'loans'
        AND at > toDateTime({after:UInt32}, 'UTC')
        AND kind IN ('job', 'backfill')
  )
  AND version NOT IN ({made_from_events})
GROUP BY history, asset_id, since
