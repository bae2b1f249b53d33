-- Of which series and quarter hours does a rewrite take out observations of a history, in a range of time?
SELECT asset_id, toStartOfFifteenMinutes(observed_at)
FROM {removed}
WHERE history = {history:String}
  AND observed_at >= toDateTime({since:UInt32}, 'UTC') AND observed_at < toDateTime({until:UInt32}, 'UTC')
