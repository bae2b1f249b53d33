-- Borrow accounts, and the addresses behind them.

CREATE OR REPLACE VIEW account_item_at{on_cluster}
(
    address String COMMENT 'Address of the user, in lower case',
    account_index UInt32 COMMENT 'Index of the account among those of the address',
    kind String COMMENT 'Kind of item: collateral, debt, account (with neither) or stake',
    asset_id String COMMENT 'Asset id, of a stake that of the protocol token',
    unpriced UInt8 COMMENT 'Whether its value is unknown',
    weight Float64 COMMENT 'Liquidation LTV of collateral, or the part of a stake that counts',
    largest_boost Float64 COMMENT 'The most that stakes add to health',
    value Float64 COMMENT 'USD value: 0 if it never had a price, not a number if that is lost',
    weighted Float64 COMMENT 'The value times the weight',
    stake_ratio Float64 COMMENT 'The part of the collateral that weighted stakes must be worth for the largest boost',
    positions_at DateTime64(3, 'UTC') COMMENT 'Instant of the snapshot of positions',
    {snapshot_columns}
)
AS WITH
{functions},
{positions},
(
    SELECT (toFloat64(any(staking_health_modifier)), toFloat64(any(stake_collateral_ratio)))
    FROM market_config
    WHERE observed_at = markets.1 AND version = markets.2
) AS rules
SELECT
    i.address AS address,
    i.account_index AS account_index,
    i.kind AS kind,
    i.asset_id AS asset_id,
    i.usd IS NULL AND i.units != 0 AS unpriced,
    ifNull(multiIf(kind = 'collateral', ifNull(i.liquidation_ltv, i.market_ltv), kind = 'stake', toFloat64(s.health_weight), 0), 0)
        AS weight,
    assumeNotNull(rules.1) AS largest_boost,
    -- Of stakes that add nothing to health, a lost price does not matter.
    summand(i.usd, i.lost AND (kind != 'stake' OR weight * largest_boost != 0)) AS value,
    value * weight AS weighted,
    assumeNotNull(rules.2) AS stake_ratio,
    i.positions_at AS positions_at,
    i.markets_at AS markets_at,
    i.prices_at AS prices_at
FROM positions AS i
LEFT JOIN (SELECT * FROM ptoken_pool FINAL WHERE observed_at = ptoken.1 AND version = ptoken.2) AS s
    ON s.pool = i.pool
WHERE i.kind IN ('collateral', 'debt', 'account', 'stake')
SETTINGS join_use_nulls = 1
COMMENT 'What makes up the health of accounts at an instant; account_at sums it up';

CREATE OR REPLACE VIEW account_at{on_cluster}
AS WITH
{functions}
SELECT
    address,
    account_index,
    {account},
    any(i.positions_at) AS positions_at,
    any(i.markets_at) AS markets_at,
    any(i.prices_at) AS prices_at
FROM account_item_at(time = {time:String}) AS i
GROUP BY address, account_index
HAVING countIf(kind != 'stake') > 0
SETTINGS join_use_nulls = 1
COMMENT 'Every borrow account at an instant, with the columns of account: FROM account_at(time = \'2026-03-01T12:00:00Z\')';

CREATE OR REPLACE VIEW account{on_cluster}
(
    address String COMMENT 'Address of the user, in lower case',
    account_index UInt32 COMMENT 'Index of the account among those of the address',
    {account_columns},
    positions_at DateTime64(3, 'UTC') COMMENT 'Instant of the snapshot of positions',
    {snapshot_columns}
)
AS SELECT *
FROM account_at(time = toUnixTimestamp(now() + INTERVAL 60 SECOND))
COMMENT 'Every borrow account now; account_at has the same columns';

CREATE OR REPLACE VIEW borrower{on_cluster}
(
    rank UInt64 COMMENT 'Place among borrowers by debt, from 1',
    address String COMMENT 'Address of the borrower, in lower case',
    accounts UInt64 COMMENT 'Number of borrow accounts with a debt',
    collateral_usd Float64 COMMENT 'USD value of the collateral of these accounts',
    debt_usd Float64 COMMENT 'USD value of the debt, with interest',
    ltv Nullable(Float64) COMMENT 'Debt divided by collateral, as a fraction; null without collateral',
    health Nullable(Float64) COMMENT 'The least health of these accounts; if round(health, 12) < 1 that account can be liquidated'
)
AS SELECT
    row_number() OVER (ORDER BY debt_usd DESC, address) AS rank,
    address,
    count() AS accounts,
    sum(assumeNotNull(a.collateral_usd)) AS collateral_usd,
    sum(assumeNotNull(a.debt_usd)) AS debt_usd,
    debt_usd / nullIf(collateral_usd, 0) AS ltv,
    min(a.health) AS health
FROM account AS a
WHERE a.health IS NOT NULL
GROUP BY address
COMMENT 'Every address that owes a debt now, by its accounts of known health; in a follower, of the followed addresses only';

CREATE OR REPLACE VIEW account_value{on_cluster}
(
    address String COMMENT 'Address of the user, in lower case',
    wallet_usd Nullable(Float64) COMMENT 'USD value of the wallet, without receipt tokens that have not ended, which lent_usd has; null if a price in it is lost, as are the others',
    lent_usd Nullable(Float64) COMMENT 'USD value of what receipt tokens redeem that are not collateral',
    collateral_usd Nullable(Float64) COMMENT 'USD value of the collateral, with the receipt tokens among it',
    staked_usd Nullable(Float64) COMMENT 'USD value of protocol token that is staked, unbonding, or to be claimed',
    debt_usd Nullable(Float64) COMMENT 'USD value of the debt, with interest; null if a debt has no price',
    net_usd Nullable(Float64) COMMENT 'The sum of the others less the debt',
    unpriced UInt64 COMMENT 'Number of items of unknown value; those other than debts that never had a price count as nothing'
)
AS WITH
{functions}
SELECT
    address,
    if_known(sumIf(usd, p.kind = 'wallet')) AS wallet_usd,
    if_known(sumIf(usd, p.kind = 'lend_held')) AS lent_usd,
    if_known(sumIf(usd, p.kind = 'collateral')) AS collateral_usd,
    if_known(sumIf(usd, p.kind IN ('stake', 'unbonding', 'unclaimed', 'claimable_rewards', 'claimable_unbonding'))) AS staked_usd,
    if(countIf(p.kind = 'debt' AND p.unknown) > 0, NULL, sumIf(usd, p.kind = 'debt')) AS debt_usd,
    wallet_usd + lent_usd + collateral_usd + staked_usd - debt_usd AS net_usd,
    countIf(p.unknown) AS unpriced
FROM
(
    SELECT i.address AS address, i.kind AS kind, i.usd IS NULL AND i.units != 0 AS unknown,
        summand(i.usd, i.lost) AS usd
    FROM position_now AS i
    WHERE kind NOT IN ('account', 'lend_collateralized')
      AND NOT (kind = 'wallet'
          AND asset_id IN (SELECT receipt_id FROM all_assets)
          AND asset_id NOT IN (SELECT asset_id FROM all_assets WHERE ended_at IS NOT NULL))
) AS p
GROUP BY address
COMMENT 'What every address has and owes now, each item once';
