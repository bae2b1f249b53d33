-- Definitions of assets, and columns with their ids.

-- name: list_assets
-- Each asset as defined at an instant and a version of the ledger, with its former symbols. Assets that were first
-- defined later, by instant or up to `max_version`, have their first definition. An asset that is not listed now was
-- listed until the latest instant that any commit saw, as in the view all_assets.
SELECT
    a.* REPLACE (
        if(a.listed_until < toDateTime(4294967295), last_listed, a.listed_until) AS listed_until,
        if(a.ended_at = a.listed_until, last_listed, a.ended_at) AS ended_at),
    arrayFilter(s -> s != symbol, groupUniqArray(symbol) OVER (PARTITION BY id)) AS former_symbols,
    maxIf(a.listed_until, a.listed_until < toDateTime(4294967295)) OVER (PARTITION BY id) AS last_listed
FROM asset_definition AS a
WHERE version <= {max_version:UInt64}
ORDER BY
    id,
    defined_at <= toDateTime({at:UInt32}) DESC,
    abs(toInt64(defined_at) - {at:UInt32}),
    version <= {version:UInt64} DESC,
    if(version <= {version:UInt64}, bitNot(version), version)
LIMIT 1 BY id

-- name: list_definitions
-- All definitions of each asset, in the order of their instants; the last definition of an instant wins.
SELECT *, emptyArrayString() AS former_symbols
FROM asset_definition
ORDER BY id, defined_at, version DESC
LIMIT 1 BY id, defined_at

-- name: show_assets
-- Raises the version of a dataset's head above those of all definitions, unless it is above them, by a ledger row of
-- its own. This row brings no observations, and has the source of the newest commit. It begins where the oldest import
-- does, because imports bring such definitions; without imports, at the newest observation.
INSERT INTO snapshot (dataset, at, kind, first_observed_at, last_observed_at, source, version, simulated)
SELECT
    dataset,
    max(s.at),
    'assets',
    least(
        max(s.last_observed_at),
        ifNull((SELECT minOrNull(first_observed_at) FROM snapshot WHERE kind = 'import'), max(s.last_observed_at))
    ),
    max(s.last_observed_at),
    argMax(if(s.kind = 'import', '', s.source), s.version),
    {version:UInt64},
    argMax(s.simulated, s.version)
FROM snapshot AS s
WHERE dataset = {dataset:String}
  AND (SELECT max(version) FROM asset_definition) > (SELECT max(version) FROM snapshot_head WHERE dataset = {dataset:String})
GROUP BY dataset

-- name: announce_assets
-- Announces each ledger row that shows definitions as a finished rewrite, unless it was announced: a past moment may
-- have more assets now.
INSERT INTO rewrite (dataset, version, finished)
SELECT DISTINCT dataset, version, 1
FROM snapshot
WHERE dataset = {dataset:String}
  AND kind = 'assets'
  AND version NOT IN (SELECT version FROM rewrite WHERE dataset = {dataset:String})
