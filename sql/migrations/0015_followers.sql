-- Positions of a source that does not tell those of all addresses.

ALTER TABLE position_summary
    COMMENT COLUMN IF EXISTS addresses 'Addresses that have a position; 0 if the source tells the positions of some only';
