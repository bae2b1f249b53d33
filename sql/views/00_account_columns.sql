-- What {account} comes to, in place of {account_columns}.
collateral_usd Nullable(Float64) COMMENT 'USD value of the collateral; null, as is all that follows from it, if a price in it is lost',
debt_usd Nullable(Float64) COMMENT 'USD value of the debt, with interest; null if a debt has no price',
ltv Nullable(Float64) COMMENT 'Debt divided by collateral, as a fraction; null without collateral',
health Nullable(Float64) COMMENT 'Health: if round(health, 12) < 1 the account can be liquidated; null without debt, or if a price that it needs is unknown',
base Nullable(Float64) COMMENT 'The part of health from collateral: its value times the liquidation LTV, divided by the debt; null where health is',
boost Nullable(Float64) COMMENT 'The part of health from staked protocol token; null where health is',
unpriced_collaterals UInt64 COMMENT 'Number of collaterals without a price, where one that never had any counts as nothing; if the account owes, also of stakes that lost theirs',
unpriced_debts UInt64 COMMENT 'Number of debts without a price'
