-- How was each asset defined at an instant and a version of the ledger, and which other symbols has it had? Assets that
-- were first defined later, by instant or up to another version, have their first definition. An asset that is not listed
-- now was listed until the latest instant that any run saw, whichever of them was written last; so view all_assets has it.
SELECT
    a.* REPLACE (
        if(a.listed_until < toDateTime(4294967295), last_listed, a.listed_until) AS listed_until,
        if(a.ended_at = a.listed_until, last_listed, a.ended_at) AS ended_at),
    arrayFilter(s -> s != symbol, groupUniqArray(symbol) OVER (PARTITION BY id)) AS former_symbols,
    maxIf(a.listed_until, a.listed_until < toDateTime(4294967295)) OVER (PARTITION BY id) AS last_listed
FROM asset_definition AS a
WHERE version <= {reaching:UInt64}
ORDER BY
    id,
    defined_at <= toDateTime({at:UInt32}) DESC,
    abs(toInt64(defined_at) - {at:UInt32}),
    version <= {version:UInt64} DESC,
    if(version <= {version:UInt64}, bitNot(version), version)
LIMIT 1 BY id
