-- Repeats the ledger's row about the newest run of a family with a greater version, if there are definitions that are newer
-- than the family's head.
INSERT INTO snapshot
SELECT * REPLACE ({version:UInt64} AS version)
FROM snapshot FINAL
WHERE family = {family:String}
  AND (SELECT max(version) FROM asset) > (SELECT max(version) FROM snapshot_head WHERE family = {family:String})
ORDER BY at DESC, version DESC
LIMIT 1
