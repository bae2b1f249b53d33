-- The runs that position_at and account_at read, in place of {runs}, after {instant}. Before the first snapshot they raise.
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
