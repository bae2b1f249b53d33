-- What addresses have, in standard units and USD.

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
    kind String COMMENT 'Kind of item: collateral, debt, account (with neither), lend_held, lend_collateralized, wallet, stake, unbonding, unclaimed, claimable_rewards or claimable_unbonding. Receipt tokens stand twice: those in wallet are in lend_held, too, and those in collateral in lend_collateralized',
    account_index UInt32 COMMENT 'Index of the borrow account of a collateral, debt, account or stake item; otherwise 0',
    asset_id String COMMENT 'Asset id: of a lend item that of the lent asset, of staking items that of the protocol token',
    symbol String COMMENT 'Symbol of the asset; empty for an asset that is not defined',
    pool UInt32 COMMENT 'Index of the staking pool of a stake; otherwise 0',
    units Float64 COMMENT 'Amount in standard units, with interest, of lend items what they redeem; in denom units for an asset that is not defined',
    price Nullable(Float64) COMMENT 'USD per standard unit; null if unknown',
    usd Nullable(Float64) COMMENT 'USD value; null if unknown',
    lost Bool COMMENT 'Whether the value is unknown because the asset lost its price, or ended (not of a collateral, debt or stake): sums that include the item are unknown, too. Without a price ever, it counts as nothing',
    until Nullable(DateTime64(3, 'UTC')) COMMENT 'Instant at which a stake moves, or an unbonding unlocks',
    since DateTime64(3, 'UTC') COMMENT 'Instant of the snapshot that wrote the item: it has been so since then, or for longer if earlier snapshots were added later',
    allowable_ltv Nullable(Float64) COMMENT 'Own loan-to-value ratio of collateral for withdrawals and borrows, a fraction; null: the market has it',
    liquidation_ltv Nullable(Float64) COMMENT 'Own loan-to-value ratio of collateral for liquidations, a fraction; null: the market has it',
    positions_at DateTime64(3, 'UTC') COMMENT 'Instant of the snapshot of positions',
    {snapshot_columns}
)
AS SELECT *
FROM position_at(time = toUnixTimestamp(now() + INTERVAL 60 SECOND))
COMMENT 'Every item that addresses have now; position_at has the same columns. Sums of several kinds count receipt tokens twice: account_value does not';

CREATE OR REPLACE VIEW lender{on_cluster}
(
    rank UInt64 COMMENT 'Place among lenders by value, from 1',
    address String COMMENT 'Address of the lender, in lower case',
    assets UInt64 COMMENT 'Number of assets lent',
    lent_usd Nullable(Float64) COMMENT 'USD value of what the receipt tokens of the address redeem, held or posted as collateral; null if it includes a lost price'
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
