-- Raises a family's head to what its runs have left, if there are any. It counts no runs anew.
INSERT INTO snapshot_head (family, at, last_observed_at, version, runs, sources)
SELECT '{family}', at, last_observed_at, version, 0, sources
FROM ({ends})
WHERE version > 0
