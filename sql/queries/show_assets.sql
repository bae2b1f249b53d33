-- Repeats the ledger's row about the newest run of a family with a greater version, unless no definitions were staged.
INSERT INTO snapshot
SELECT * REPLACE ({version:UInt64} AS version)
FROM snapshot FINAL
WHERE family = {family:String} AND (SELECT count() FROM {staged:Identifier}) > 0
ORDER BY at DESC, version DESC
LIMIT 1
