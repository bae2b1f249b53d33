-- How was each asset defined at a version of the ledger?
SELECT *
FROM asset
WHERE version <= {version:UInt64}
ORDER BY id, version DESC
LIMIT 1 BY id
