-- Who can be liquidated, now and when a price changes.

CREATE OR REPLACE VIEW account_risk
(
    address String COMMENT 'Address of the user, in lower case',
    account_index UInt32 COMMENT 'Index of the account among those of the address',
    collateral_usd Decimal(38, 18) COMMENT 'USD value of the collateral',
    debt_usd Decimal(38, 18) COMMENT 'USD value of the debt, with interest',
    bad_debt_usd Decimal(38, 18) COMMENT 'USD value by which the debt exceeds the collateral; 0 if it does not',
    ltv Nullable(Decimal(38, 18)) COMMENT 'Debt divided by collateral, as a fraction; null without collateral',
    health Decimal(38, 18) COMMENT 'Health: below 1 the account can be liquidated, below 1.1 it is at risk',
    health_from Decimal(38, 18) COMMENT 'Where the range of health begins in which the histogram of the HTTP service counts the account'
)
AS SELECT
    address,
    account_index,
    collateral_usd,
    debt_usd,
    greatest(a.debt_usd - a.collateral_usd, 0) AS bad_debt_usd,
    ltv,
    assumeNotNull(a.health) AS health,
    arrayLast(bound -> bound <= health, [0, 0.5, 0.8, 0.9, 0.95, 1, 1.05, 1.1, 1.25, 1.5, 2, 3, 5, 10]::Array(Decimal(38, 18)))
        AS health_from
FROM account AS a
WHERE a.health IS NOT NULL AND a.unpriced_debts = 0
COMMENT 'Every borrow account that owes debt of known value now';

CREATE OR REPLACE VIEW risk_ladder
AS WITH
{functions},
(SELECT anyOrNull(price) FROM price_now WHERE asset_id = {asset_id:String}) AS now,
-- The asset, and its receipt token where that costs what it redeems.
moving AS
(
    SELECT p.asset_id
    FROM price_now AS p
    LEFT JOIN assets AS o ON o.receipt_id = p.asset_id
    WHERE p.asset_id = {asset_id:String} OR (p.follows AND o.asset_id = {asset_id:String})
),
accounts AS
(
    SELECT
        (sumIf(exact, kind = 'debt' AND NOT moves), sumIf(exact, kind = 'debt' AND moves)) AS debts,
        (sumIf(exact, kind = 'collateral' AND NOT moves), sumIf(exact, kind = 'collateral' AND moves)) AS collaterals,
        (sumIf(weighted, kind = 'collateral' AND NOT moves), sumIf(weighted, kind = 'collateral' AND moves)) AS secured,
        (sumIf(weighted, kind = 'stake' AND NOT moves), sumIf(weighted, kind = 'stake' AND moves)) AS staked,
        any(largest_boost) AS largest_boost,
        any(stake_ratio) AS stake_ratio
    FROM
    (
        SELECT *, asset_id IN moving AS moves
        FROM account_item_at(at = '2106-01-01')
    )
    GROUP BY address, account_index
    HAVING debts.1 + debts.2 > 0 AND countIf(kind = 'debt' AND unpriced) = 0
),
stressed AS
(
    SELECT
        arrayJoin(range(5, 201, 5)) AS percent,
        toDecimal256(percent, 0) * toDecimal256('0.01', 2) AS factor,
        debts.1 + debts.2 * factor AS debt,
        collaterals.1 + collaterals.2 * factor AS collateral,
        divided(reinterpretAsInt256(secured.1 + secured.2 * factor), reinterpretAsInt256(debt)) AS base,
        -- In floating point, to some 10^-16.
        toFloat64(staked.1) + toFloat64(staked.2) * toFloat64(factor) AS stake,
        toFloat64(collateral) * toFloat64(stake_ratio) AS required,
        least(1, if(required = 0, toFloat64(collateral > 0), stake / required)) * toFloat64(largest_boost) AS boost,
        base + toDecimal256(boost, 18) < 1 AS is_liquidatable
    FROM accounts
    WHERE now IS NOT NULL
)
SELECT
    toDecimal64(s.factor - 1, 2) AS change,
    in_usd(s.factor, any(now)) AS price,
    countIf(is_liquidatable) AS accounts,
    toDecimal128(roundBankers(sumIf(collateral, is_liquidatable), 18), 18) AS collateral_usd,
    toDecimal128(roundBankers(sumIf(debt, is_liquidatable), 18), 18) AS debt_usd,
    toDecimal128(roundBankers(sumIf(debt - collateral, debt > collateral), 18), 18) AS bad_debt_usd
FROM stressed AS s
GROUP BY s.factor
ORDER BY change
SETTINGS join_use_nulls = 0
COMMENT 'What could be liquidated at prices of an asset from 95 % below to 100 % above its present one (columns change, price, accounts, collateral_usd, debt_usd and bad_debt_usd): FROM risk_ladder(asset_id = \'native;uatom\')';
