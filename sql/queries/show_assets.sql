-- Raises the version of a family's head, unless it is above those of all definitions: with a row of the ledger of its own,
-- which brings no observations and is of the source of the newest run. It begins where the oldest import does, because
-- imports bring such definitions; without imports, at the newest observation.
INSERT INTO snapshot (family, at, kind, first_observed_at, last_observed_at, source, version, simulated)
SELECT
    family,
    max(s.at),
    'assets',
    least(
        max(s.last_observed_at),
        ifNull((SELECT minOrNull(first_observed_at) FROM snapshot WHERE kind = 'import'), max(s.last_observed_at))
    ),
    max(s.last_observed_at),
    argMax(if(s.kind = 'import', '', s.source), s.version),
    {version:UInt64},
    argMax(s.simulated, s.version)
FROM snapshot AS s
WHERE family = {family:String}
  AND (SELECT max(version) FROM asset_definition) > (SELECT max(version) FROM snapshot_head WHERE family = {family:String})
GROUP BY family
