-- Stages the events of an asset as those of another.
INSERT INTO {staged}
SELECT * REPLACE ({new:String} AS asset_id, {version:UInt64} AS version)
FROM account_event AS e FINAL
WHERE e.asset_id = {old:String}
