-- The columns of {account}. Fills {account_columns}.
collateral_usd Nullable(Float64) COMMENT 'USD value of the collateral. Null if a price in it is lost; then all columns that need it are null, too',
debt_usd Nullable(Float64) COMMENT 'USD value of the debt, with interest. Null if a debt has no price',
ltv Nullable(Float64) COMMENT 'Debt divided by collateral, as a fraction. Null without collateral',
health Nullable(Float64) COMMENT 'Health of the account. It can be liquidated if round(health, 12) < 1. Null without debt, or if a price that it needs is unknown',
base Nullable(Float64) COMMENT 'The part of health from collateral: its value times the liquidation LTV, divided by the debt. Null if health is null',
boost Nullable(Float64) COMMENT 'The part of health from staked protocol tokens. Null if health is null',
unpriced_collaterals UInt64 COMMENT 'Number of collaterals without a price and, if the account owes, of stakes whose price is lost. A collateral that never had a price counts as worth 0',
unpriced_debts UInt64 COMMENT 'Number of debts without a price'
