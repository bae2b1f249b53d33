-- Makes a job of positions compare all items of all addresses again: these digests are of no run.
INSERT INTO position_digest (address, observed_at, digest, version)
SELECT DISTINCT address, toDateTime(0, 'UTC'), 0, {version:UInt64}
FROM position
