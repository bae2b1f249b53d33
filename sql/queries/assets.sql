-- How was each asset defined at a version of the ledger? Assets that were first defined later, up to another version, have
-- their first definition.
SELECT *
FROM asset
WHERE version <= {reaching:UInt64}
ORDER BY id, version <= {version:UInt64} DESC, if(version <= {version:UInt64}, bitNot(version), version)
LIMIT 1 BY id
