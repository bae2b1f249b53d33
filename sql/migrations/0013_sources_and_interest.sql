-- Where the data is from: simulated data is never mixed with other data, so every run says whether it is simulated. Runs
-- from before this script are simulated if they name the only simulated source that there was.

ALTER TABLE snapshot ADD COLUMN IF NOT EXISTS simulated Bool DEFAULT kind != 'import' AND match(source, '^simulated(:|$)') COMMENT 'Whether the source made the rows up';

ALTER TABLE snapshot_head ADD COLUMN IF NOT EXISTS sources SimpleAggregateFunction(groupUniqArrayArray, Array(Tuple(source String, simulated Bool))) COMMENT 'Sources of all runs of the family, and whether each is simulated. The empty text stands for imported files';

ALTER TABLE snapshot_head_view MODIFY QUERY
SELECT
    family,
    max(s.at) AS at,
    max(s.last_observed_at) AS last_observed_at,
    max(s.version) AS version,
    toUInt64(count()) AS runs,
    groupUniqArray((if(s.kind = 'import', '', s.source), s.simulated)) AS sources
FROM snapshot AS s
GROUP BY family;

INSERT INTO snapshot_head (family, sources)
SELECT family, groupUniqArray((if(s.kind = 'import', '', s.source), s.simulated)) AS sources
FROM snapshot AS s
GROUP BY family;

-- A sum that was written with each snapshot depended on the order in which snapshots were completed. It is made from the
-- other columns now, when it is read.
ALTER TABLE market_lend DROP COLUMN IF EXISTS interest_paid;
