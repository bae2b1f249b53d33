-- Which version has the newest definition of an asset? 0 without assets.
SELECT max(version) AS version
FROM asset_definition
