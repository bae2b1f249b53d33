-- Comments only: a materialized view does not take over those of the table that it fills.

ALTER TABLE snapshot_head_view
    COMMENT COLUMN family 'Family of data',
    COMMENT COLUMN at 'Newest instant of the runs that are inserted together',
    COMMENT COLUMN last_observed_at 'Newest observation of these runs',
    COMMENT COLUMN version 'Greatest version of these runs',
    COMMENT COLUMN runs 'Number of these runs; a repeated insert counts again',
    COMMENT COLUMN sources 'Sources of these runs, and whether each is simulated. The empty text stands for imported files';
