-- Announces each row of the ledger that shows definitions, and was not announced yet, as a rewrite that has finished: a past
-- moment may have more assets now.
INSERT INTO rewrite (family, version, finished)
SELECT DISTINCT family, version, 1
FROM snapshot
WHERE family = {family:String}
  AND kind = 'assets'
  AND version NOT IN (SELECT version FROM rewrite WHERE family = {family:String})
