-- Items of addresses, in standard units and USD.

CREATE OR REPLACE VIEW position_at{on_cluster}
AS WITH
{functions},
{positions}
SELECT * EXCEPT market_ltv
FROM positions
COMMENT 'Every item that addresses had at an instant, with the columns of position_now: FROM position_at(time = \'2026-03-01T12:00:00Z\')';

CREATE OR REPLACE VIEW position_now{on_cluster}
(
    address String COMMENT 'Address of the user, in lower case',
    kind String COMMENT 'Kind of item: collateral, debt, account (with neither), lend_held, lend_collateralized, wallet, stake, unbonding, unclaimed, claimable_rewards or claimable_unbonding. Receipt tokens appear twice: those in wallet are also in lend_held, those in collateral also in lend_collateralized',
    account_index UInt32 COMMENT 'Index of the borrow account of a collateral, debt, account or stake item; otherwise 0',
    asset_id String COMMENT 'Asset id. For a lend item, the lent asset; for staking items, the protocol token',
    symbol String COMMENT 'Symbol of the asset. Empty if the asset is not defined',
    pool UInt32 COMMENT 'Index of the staking pool of a stake; otherwise 0',
    units Float64 COMMENT 'Amount in standard units, with interest. For lend items, the amount that they redeem. In denom units if the asset is not defined',
    price Nullable(Float64) COMMENT 'USD per standard unit. Null if unknown',
    usd Nullable(Float64) COMMENT 'USD value. Null if unknown',
    lost Bool COMMENT 'Whether the value is unknown because the price is too old, or the asset has ended (not for collateral, debt and stakes). Sums that include the item are unknown, too. An item that never had a price counts as worth 0',
    until Nullable(DateTime64(3, 'UTC')) COMMENT 'Instant at which a stake moves, or an unbonding unlocks',
    since DateTime64(3, 'UTC') COMMENT 'Instant of the snapshot that wrote the item. The item is that old, or older if earlier snapshots were added later',
    allowable_ltv Nullable(Float64) COMMENT 'Loan-to-value ratio of this collateral for withdrawals and borrows, a fraction. Null: as in the market',
    liquidation_ltv Nullable(Float64) COMMENT 'Loan-to-value ratio of this collateral for liquidations, a fraction. Null: as in the market',
    positions_at DateTime64(3, 'UTC') COMMENT 'Instant of the snapshot of positions',
    {snapshot_columns}
)
AS SELECT *
FROM position_at(time = toUnixTimestamp(now() + INTERVAL 60 SECOND))
COMMENT 'Every item that addresses have now. position_at has the same columns. Sums over several kinds count receipt tokens twice; account_value does not';

CREATE OR REPLACE VIEW lender{on_cluster}
(
    rank UInt64 COMMENT 'Rank among lenders by value, from 1',
    address String COMMENT 'Address of the lender, in lower case',
    assets UInt64 COMMENT 'Number of assets lent',
    lent_usd Nullable(Float64) COMMENT 'USD value that the receipt tokens of the address redeem, whether held or posted as collateral. Null if a price is lost'
)
AS WITH
{functions}
SELECT
    row_number() OVER (ORDER BY lent_usd DESC, address) AS rank,
    address,
    uniqExact(asset_id) AS assets,
    if_known(sum(summand(usd, lost))) AS lent_usd
FROM position_now
WHERE kind IN ('lend_held', 'lend_collateralized') AND units != 0
GROUP BY address
COMMENT 'Every address that lends now';
