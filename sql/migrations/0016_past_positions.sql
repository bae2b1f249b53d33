-- Positions are added before others, too.

ALTER TABLE position{local}{on_cluster}
    COMMENT COLUMN IF EXISTS observed_at 'Instant of the snapshot in which the item was new, changed or gone, or has a row because one was added before it; the row is valid until the next one of the item';
