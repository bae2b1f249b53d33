-- From when on a definition counts: a past that is filled in afterwards may have another one than the present.

ALTER TABLE asset
    ADD COLUMN IF NOT EXISTS defined_at DateTime('UTC')
    COMMENT 'Instant from which on this definition counts: of the first snapshot that has it, or of the newest one when a file stated it; 1970 without one',
    MODIFY ORDER BY (id, version, defined_at);

ALTER TABLE asset
    COMMENT COLUMN IF EXISTS version 'Version of the run that wrote this definition; of those that count from the same instant, the greatest version wins';
