-- The source that the store remembers.

ALTER TABLE claim
    ADD COLUMN IF NOT EXISTS source String
    COMMENT 'Source of the jobs: another is refused unless it replaces this one. Empty before the first snapshot, and in stores of before until the next one';

ALTER TABLE claim
    COMMENT COLUMN IF EXISTS claimed_at 'Instant of the claim; of several rows the newest holds';
