-- Accounts that can be liquidated, now and when a price changes.

CREATE OR REPLACE VIEW account_risk{on_cluster}
(
    address String COMMENT 'Address of the user, in lower case',
    account_index UInt32 COMMENT 'Index of the account among the accounts of the address',
    collateral_usd Float64 COMMENT 'USD value of the collateral',
    debt_usd Float64 COMMENT 'USD value of the debt, with interest',
    bad_debt_usd Float64 COMMENT 'USD value by which the debt exceeds the collateral. 0 if it does not',
    ltv Nullable(Float64) COMMENT 'Debt divided by collateral, as a fraction. Null without collateral',
    health Float64 COMMENT 'Health of the account. If round(health, 12) is below 1, it can be liquidated; below 1.1, it is at risk',
    health_from Float64 COMMENT 'Start of the bin of health that holds the account in the histogram of the HTTP service'
)
AS SELECT
    address,
    account_index,
    assumeNotNull(a.collateral_usd) AS collateral_usd,
    assumeNotNull(a.debt_usd) AS debt_usd,
    greatest(debt_usd - collateral_usd, 0) AS bad_debt_usd,
    ltv,
    assumeNotNull(a.health) AS health,
    arrayLast(bound -> bound <= round(health, 12), [0., 0.5, 0.8, 0.9, 0.95, 1, 1.05, 1.1, 1.25, 1.5, 2, 3, 5, 10])
        AS health_from
FROM account AS a
WHERE a.health IS NOT NULL
COMMENT 'Every borrow account that owes debt now and has a known health. A follower shows followed addresses only';

CREATE OR REPLACE VIEW risk_ladder{on_cluster}
(
    change Float64 COMMENT 'Change of the price as a fraction, from -0.95 to 1 in steps of 0.05. 0 is the actual price',
    price Float64 COMMENT 'USD per standard unit after the change: of the asset, or of the asset that it redeems if its price follows',
    accounts UInt64 COMMENT 'Number of accounts that can be liquidated at this price',
    collateral_usd Float64 COMMENT 'USD value of the collateral of these accounts at this price',
    debt_usd Float64 COMMENT 'USD value of the debt of these accounts at this price, with interest',
    bad_debt_usd Float64 COMMENT 'USD value by which the debt of all accounts exceeds their collateral at this price',
    positions_at DateTime64(3, 'UTC') COMMENT 'Instant of the snapshot of positions',
    {snapshot_columns}
)
AS WITH
{functions},
(
    SELECT any(origin_id)
    FROM all_assets
    WHERE asset_id = {asset_id:String}
    HAVING NOT throwIf(count() = 0, concat('There is no asset with the id \'', {asset_id:String}, '\': the view assets has all ids'))
) AS origin,
-- The underlying asset: a token without a price stands for its origin's underlying asset. Derived prices change with it.
asked AS
(
    SELECT
        groupArray((asset_id, priced_by, price)) AS prices,
        arrayFirst(p -> p.1 = if(arrayExists(o -> o.1 = {asset_id:String}, prices), {asset_id:String}, origin), prices).2 AS stands_for,
        arrayFirst(p -> p.1 = stands_for, prices).3 AS quoted,
        arrayMap(p -> p.1, arrayFilter(p -> p.2 = stands_for, prices)) AS moving
    FROM price_at(time = {time:String})
    HAVING quoted IS NOT NULL
),
accounts AS
(
    SELECT
        (sumIf(value, kind = 'debt' AND NOT moves), sumIf(value, kind = 'debt' AND moves)) AS debts,
        (sumIf(value, kind = 'collateral' AND NOT moves), sumIf(value, kind = 'collateral' AND moves)) AS collaterals,
        (sumIf(weighted, kind = 'collateral' AND NOT moves), sumIf(weighted, kind = 'collateral' AND moves)) AS secured,
        (sumIf(weighted, kind = 'stake' AND NOT moves), sumIf(weighted, kind = 'stake' AND moves)) AS staked,
        any(largest_boost) AS largest_boost,
        any(stake_ratio) AS stake_ratio,
        any(assumeNotNull(i.quoted)) AS quoted,
        any(i.positions_at) AS positions_at,
        any(i.markets_at) AS markets_at,
        any(i.prices_at) AS prices_at
    FROM
    (
        SELECT *, has(a.moving, i.asset_id) AS moves
        FROM account_item_at(time = {time:String}) AS i
        CROSS JOIN (SELECT moving, quoted FROM asked) AS a
    ) AS i
    GROUP BY address, account_index
    -- NaN means a lost price.
    HAVING debts.1 + debts.2 > 0 AND countIf(kind = 'debt' AND unpriced) = 0
        AND NOT isNaN(collaterals.1 + collaterals.2 + staked.1 + staked.2)
),
stressed AS
(
    SELECT
        arrayJoin(range(5, 201, 5)) AS percent,
        debts.1 + debts.2 * percent / 100 AS debt,
        collaterals.1 + collaterals.2 * percent / 100 AS collateral,
        (secured.1 + secured.2 * percent / 100) / debt AS base,
        boosted(staked.1 + staked.2 * percent / 100, collateral, stake_ratio, largest_boost) AS boost,
        round(base + boost, 12) < 1 AS is_liquidatable,
        quoted,
        positions_at,
        markets_at,
        prices_at
    FROM accounts
)
SELECT
    (toInt16(s.percent) - 100) / 100 AS change,
    any(s.quoted) * s.percent / 100 AS price,
    countIf(is_liquidatable) AS accounts,
    sumIf(collateral, is_liquidatable) AS collateral_usd,
    sumIf(debt, is_liquidatable) AS debt_usd,
    sumIf(debt - collateral, debt > collateral) AS bad_debt_usd,
    any(s.positions_at) AS positions_at,
    any(s.markets_at) AS markets_at,
    any(s.prices_at) AS prices_at
FROM stressed AS s
GROUP BY s.percent
ORDER BY change
SETTINGS join_use_nulls = 0
COMMENT 'Amounts that could be liquidated if the price of an asset, or of the asset that a receipt token redeems, changed by -95 % to +100 %. A follower counts followed addresses only: FROM risk_ladder(asset_id = \'native;ahel\', time = toUnixTimestamp(now()))';
