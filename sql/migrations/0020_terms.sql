-- What a source may state of the collateral of an account, and of markets.

ALTER TABLE position{local}{on_cluster}
    ADD COLUMN IF NOT EXISTS allowable_ltv Nullable(Decimal(38, 18)) CODEC(ZSTD(1))
    COMMENT 'Own loan-to-value ratio of collateral for withdrawals and borrows, a fraction; null: the market has it';

ALTER TABLE position{local}{on_cluster}
    ADD COLUMN IF NOT EXISTS liquidation_ltv Nullable(Decimal(38, 18)) CODEC(ZSTD(1))
    COMMENT 'Own loan-to-value ratio of collateral for liquidations, a fraction; null: the market has it';

ALTER TABLE market_lend
    ADD COLUMN IF NOT EXISTS paused Nullable(Bool)
    COMMENT 'Whether nothing can be done in the market for now; null if the source does not state it';

ALTER TABLE market_lend
    ADD COLUMN IF NOT EXISTS frozen Nullable(Bool)
    COMMENT 'Whether what is there can only be taken out or paid back; null if the source does not state it';

ALTER TABLE market_lend
    ADD COLUMN IF NOT EXISTS supply_cap Nullable(UInt256) CODEC(ZSTD(1))
    COMMENT 'Largest total that may be lent, in denom units; null means no limit, or that the source does not state it';

ALTER TABLE market_collateral
    ADD COLUMN IF NOT EXISTS paused Nullable(Bool)
    COMMENT 'Whether nothing can be done in the market for now; null if the source does not state it';

ALTER TABLE market_collateral
    ADD COLUMN IF NOT EXISTS frozen Nullable(Bool)
    COMMENT 'Whether what is there can only be taken out or paid back; null if the source does not state it';

ALTER TABLE market_debt
    ADD COLUMN IF NOT EXISTS paused Nullable(Bool)
    COMMENT 'Whether nothing can be done in the market for now; null if the source does not state it';

ALTER TABLE market_debt
    ADD COLUMN IF NOT EXISTS frozen Nullable(Bool)
    COMMENT 'Whether what is there can only be taken out or paid back; null if the source does not state it';
