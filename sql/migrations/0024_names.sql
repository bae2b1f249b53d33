-- Names of tables that are not those of views, which have the plural, and comments that name them. The next script drops
-- the tables of before.

CREATE TABLE IF NOT EXISTS asset_definition{on_cluster} AS asset
ENGINE = {replicated}ReplacingMergeTree{copied}
ORDER BY (id, version, defined_at)
COMMENT 'Definitions of assets, one row for each change of a definition; read the views assets and all_assets';

INSERT INTO asset_definition SELECT * FROM asset;

CREATE TABLE IF NOT EXISTS correction_progress{on_cluster} AS correction
ENGINE = {replicated}ReplacingMergeTree({copied, }heard_at)
ORDER BY (began_ns, family)
COMMENT 'Each rewrite of history, as its writer last saw it; read the view corrections';

INSERT INTO correction_progress SELECT * FROM correction;

ALTER TABLE doubt
    MODIFY COMMENT 'Each value that was in doubt when it was written; read the view anomalies, which leaves out what was corrected since';

ALTER TABLE cell{local}{on_cluster}
    COMMENT COLUMN IF EXISTS seconds 'Seconds with a value from first_at to last_at, 0 if it has one observation. Values also hold before and after: the views by the hour and day have means';
