-- Sums have an observation at each event, and events may come late, move or go. `number` would then change for all later
-- ones of an address.

ALTER TABLE event{local}{on_cluster}
    ADD COLUMN IF NOT EXISTS brought_by LowCardinality(String) DEFAULT 'source'
    COMMENT 'Who has brought the event: source, file or both; what a file has brought stays when the source lists it no more';

ALTER TABLE event{local}{on_cluster}
    ADD COLUMN IF NOT EXISTS gone Bool
    COMMENT 'Whether this version takes the event out: its source lists it no more, or at another instant';

ALTER TABLE event{local}{on_cluster}
    COMMENT COLUMN IF EXISTS at 'Instant of the event, whole seconds';

ALTER TABLE account_event{local}{on_cluster}
    ADD COLUMN IF NOT EXISTS brought_by LowCardinality(String) DEFAULT 'source'
    COMMENT 'Who has brought the event: source, file or both; what a file has brought stays when the source lists it no more';

ALTER TABLE account_event{local}{on_cluster}
    ADD COLUMN IF NOT EXISTS gone Bool
    COMMENT 'Whether this version takes the event out: its source lists it no more, or at another instant';

ALTER TABLE account_event{local}{on_cluster}
    COMMENT COLUMN IF EXISTS at 'Instant of the event, whole seconds';

ALTER TABLE account_event{local}{on_cluster}
    DROP COLUMN IF EXISTS number;

ALTER TABLE snapshot
    ADD COLUMN IF NOT EXISTS stated Array(LowCardinality(String))
    COMMENT 'Of loans, the histories whose values at the snapshot the source stated; the others are sums of events';

ALTER TABLE snapshot
    ADD COLUMN IF NOT EXISTS complete_until DateTime('UTC')
    COMMENT 'Of loans, up to when the source said that its events were complete; 1970 if it did not say';

-- What flash loans came to is a history now.

CREATE TABLE IF NOT EXISTS flash_loan_volume{on_cluster}
(
    observed_at DateTime('UTC') COMMENT 'Instant of the snapshot',
    usd Decimal(38, 18) COMMENT 'USD value of all flash loans so far, each at the time of the loan',
    version UInt64 COMMENT 'Version of the run that wrote the row'
)
ENGINE = {replicated}ReplacingMergeTree{copied}
ORDER BY (observed_at, version)
COMMENT 'Flash loans since the first one of the protocol, at each snapshot';

INSERT INTO observation (history, asset_id, observed_at, value, version)
SELECT 'flash_loans', '', observed_at, usd, version
FROM flash_loan_volume
WHERE (observed_at, version) IN (SELECT at, version FROM snapshot WHERE family = 'loans')
ORDER BY observed_at DESC
LIMIT 1;

DROP TABLE IF EXISTS flash_loan_volume{on_cluster} SYNC;
