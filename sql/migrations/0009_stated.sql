-- What a source states that is otherwise computed, and what it may leave out.

ALTER TABLE market_lend
    ADD COLUMN IF NOT EXISTS interest_paid Nullable(UInt256) CODEC(ZSTD(1))
    COMMENT 'Interest paid to lenders so far by the source, in denom units; null if it is estimated from the snapshots';

ALTER TABLE unlock_arrangement
    COMMENT COLUMN IF EXISTS member_class 'Group of the beneficiary: team, advisor or investor; empty if the source does not tell it';

ALTER TABLE snapshot
    COMMENT COLUMN IF EXISTS at 'Instant of the snapshot; for an import, its newest observation, or 1970 if it brought values but no state';
