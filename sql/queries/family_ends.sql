-- How far does a family reach by what its runs have left: the newest snapshot and observation, and the sources? One that has
-- values only reaches no further than its newest observation.
SELECT
    max(s.at) AS at,
    {newest} AS last_observed_at,
    max(s.version) AS version,
    groupUniqArray((if(s.kind = 'import', '', s.source), s.simulated)) AS sources
FROM snapshot AS s
WHERE family = '{family}'
  AND kind IN ('job', 'backfill', 'import')
