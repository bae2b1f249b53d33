-- The runs that position_at and account_at read, in place of {runs}. Before the first snapshot they raise. Snapshots from
-- the future are passed over until their time has come (rule 8.16).
least(parseDateTime64BestEffort({time:String}, 3, 'UTC'), now64(3, 'UTC') + INTERVAL 60 SECOND) AS instant,
(
    SELECT maxIf((at, version), at <= instant)
    FROM snapshot
    WHERE family = 'markets' AND kind IN ('job', 'backfill')
    HAVING NOT throwIf(min(at) > instant, 'This time is before the first snapshot of markets')
) AS markets,
(
    SELECT maxIf((at, version), at <= instant)
    FROM snapshot
    WHERE family = 'ptoken' AND kind IN ('job', 'backfill')
    HAVING NOT throwIf(min(at) > instant, 'This time is before the first snapshot of the protocol token')
) AS ptoken
