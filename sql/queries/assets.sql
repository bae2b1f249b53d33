-- How was each asset defined at a version of the ledger, and which other symbols has it had? Assets that were first defined
-- later, up to another version, have their first definition.
SELECT *, arrayFilter(s -> s != symbol, groupUniqArray(symbol) OVER (PARTITION BY id)) AS former_symbols
FROM asset
WHERE version <= {reaching:UInt64}
ORDER BY id, version <= {version:UInt64} DESC, if(version <= {version:UInt64}, bitNot(version), version)
LIMIT 1 BY id
