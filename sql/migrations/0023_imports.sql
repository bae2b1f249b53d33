-- Imports of different files that end with the same observation, such as those of one file for each asset, took each
-- other's row in the ledger. Each has a row of its own from now on. So have descriptions of assets that are shown with
-- prices without being brought by them; before, the row of the newest run of prices got their version.

ALTER TABLE snapshot
    ADD COLUMN IF NOT EXISTS files UInt64 COMMENT 'Of an import, a number that stands for the paths of its files; else 0',
    MODIFY ORDER BY (family, at, kind, files),
    COMMENT COLUMN kind 'How it came: job (scheduled), backfill, or import; assets where an import of another family has brought descriptions of assets, and no more';
