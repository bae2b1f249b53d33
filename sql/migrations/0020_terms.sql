-- What a source may state of the collateral of an account, and of markets.

ALTER TABLE position{local}{on_cluster}
    ADD COLUMN IF NOT EXISTS allowable_ltv Nullable(Decimal(38, 18)) CODEC(ZSTD(1))
    COMMENT 'Own loan-to-value ratio of collateral for withdrawals and borrows, a fraction; null: the market has it';

ALTER TABLE position{local}{on_cluster}
    ADD COLUMN IF NOT EXISTS liquidation_ltv Nullable(Decimal(38, 18)) CODEC(ZSTD(1))
    COMMENT 'Own loan-to-value ratio of collateral for liquidations, a fraction; null: the market has it';
