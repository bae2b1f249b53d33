-- Borrow accounts, and their addresses.

CREATE OR REPLACE VIEW account_item_at{on_cluster}
(
    address String COMMENT 'Address of the user, in lower case',
    account_index UInt32 COMMENT 'Index of the account among the accounts of the address',
    kind String COMMENT 'Kind of item: collateral, debt, account (with neither) or stake',
    asset_id String COMMENT 'Asset id. For a stake, the protocol token',
    unpriced UInt8 COMMENT 'Whether its value is unknown',
    weight Float64 COMMENT 'Liquidation LTV of collateral, or the share of a stake that counts',
    largest_boost Float64 COMMENT 'Largest amount that stakes can add to health',
    value Float64 COMMENT 'USD value. 0 if the asset never had a price, NaN if the price is lost',
    weighted Float64 COMMENT 'The value times the weight',
    stake_ratio Float64 COMMENT 'Ratio of weighted stakes to collateral at which the boost is largest',
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
    -- A lost price does not matter for stakes without effect on health.
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
COMMENT 'The items that make up the health of accounts at an instant. account_at sums them up';

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
    account_index UInt32 COMMENT 'Index of the account among the accounts of the address',
    {account_columns},
    positions_at DateTime64(3, 'UTC') COMMENT 'Instant of the snapshot of positions',
    {snapshot_columns}
)
AS SELECT *
FROM account_at(time = toUnixTimestamp(now() + INTERVAL 60 SECOND))
COMMENT 'Every borrow account now. account_at has the same columns';

CREATE OR REPLACE VIEW borrower{on_cluster}
(
    rank UInt64 COMMENT 'Rank among borrowers by debt, from 1',
    address String COMMENT 'Address of the borrower, in lower case',
    accounts UInt64 COMMENT 'Number of borrow accounts with a debt',
    collateral_usd Float64 COMMENT 'USD value of the collateral of these accounts',
    debt_usd Float64 COMMENT 'USD value of the debt, with interest',
    ltv Nullable(Float64) COMMENT 'Debt divided by collateral, as a fraction. Null without collateral',
    health Nullable(Float64) COMMENT 'Least health of these accounts. The account can be liquidated if round(health, 12) < 1'
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
COMMENT 'Every address that owes a debt now, with its accounts of known health. A follower shows followed addresses only';

CREATE OR REPLACE VIEW account_value{on_cluster}
(
    address String COMMENT 'Address of the user, in lower case',
    wallet_usd Nullable(Float64) COMMENT 'USD value of the wallet. Receipt tokens that have not ended are in lent_usd instead. This and the other values are null if a price in them is lost',
    lent_usd Nullable(Float64) COMMENT 'USD value that receipt tokens redeem, other than collateral',
    collateral_usd Nullable(Float64) COMMENT 'USD value of the collateral, including receipt tokens',
    staked_usd Nullable(Float64) COMMENT 'USD value of protocol tokens that are staked, unbonding or claimable',
    debt_usd Nullable(Float64) COMMENT 'USD value of the debt, with interest. Null if a debt has no price',
    net_usd Nullable(Float64) COMMENT 'Sum of the other values less the debt',
    unpriced UInt64 COMMENT 'Number of items of unknown value. Items other than debts that never had a price count as worth 0'
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
COMMENT 'Value of all that each address has and owes now. Each item counts once';
