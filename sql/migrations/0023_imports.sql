-- Imports of different files that end with the same observation, such as those of one file for each asset, took each
-- other's row in the ledger. Each has a row of its own from now on.

ALTER TABLE snapshot
    ADD COLUMN IF NOT EXISTS files String COMMENT 'Of an import, the names of the files; else empty',
    MODIFY ORDER BY (family, at, kind, files);
