-- Values that a snapshot could not compute, such as the total value locked while a price is lost.

ALTER TABLE observation{local}{on_cluster}
    ADD COLUMN IF NOT EXISTS known Bool DEFAULT true
    COMMENT 'Whether there is a value; false says that there is none from this instant to the next observation, and value is 0';

ALTER TABLE observation{local}{on_cluster}
    COMMENT COLUMN IF EXISTS value 'The value, in the unit of the history; 0 where known is false';

ALTER TABLE cell{local}{on_cluster}
    ADD COLUMN IF NOT EXISTS unknown UInt32 DEFAULT 0 CODEC(T64, ZSTD(1))
    COMMENT 'Number of observations in the cell that say that there is no value; the columns from count to area leave them out';

ALTER TABLE cell{local}{on_cluster}
    ADD COLUMN IF NOT EXISTS known Bool DEFAULT true
    COMMENT 'Whether there is a value at last_at; else close is 0';

ALTER TABLE cell{local}{on_cluster}
    ADD COLUMN IF NOT EXISTS seconds UInt32 DEFAULT last_at - first_at CODEC(T64, ZSTD(1))
    COMMENT 'Seconds with a value from first_at to last_at; area / seconds is the time-weighted mean';

ALTER TABLE cell{local}{on_cluster}
    COMMENT COLUMN IF EXISTS count 'Number of observations in the cell that have a value';

ALTER TABLE cell{local}{on_cluster}
    COMMENT COLUMN IF EXISTS area 'Sum of each value times the seconds that it held, from first_at to last_at';
