-- All definitions of each asset, in the order in which they count; of those from the same instant on, the last.
SELECT *, emptyArrayString() AS former_symbols
FROM asset_definition
ORDER BY id, defined_at, version DESC
LIMIT 1 BY id, defined_at
