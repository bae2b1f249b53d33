-- Until when a source listed an asset, and its end.

ALTER TABLE asset
    ADD COLUMN IF NOT EXISTS listed_until Nullable(DateTime('UTC'))
    COMMENT 'Instant of the last snapshot in which its source listed it; in 2106 while it does; null if none did';

ALTER TABLE asset
    ADD COLUMN IF NOT EXISTS ended_at Nullable(DateTime('UTC'))
    COMMENT 'Instant after which the asset has no values any more; null while it goes on';
