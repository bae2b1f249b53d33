-- Borrow accounts, and the addresses behind them.

CREATE OR REPLACE VIEW account_item_at
AS WITH
(
    SELECT max((at, version))
    FROM snapshot
    WHERE family = 'markets' AND kind IN ('job', 'backfill') AND at <= parseDateTime64BestEffort({at:String}, 3, 'UTC')
) AS markets,
(
    SELECT max((at, version))
    FROM snapshot
    WHERE family = 'ptoken' AND kind IN ('job', 'backfill') AND at <= parseDateTime64BestEffort({at:String}, 3, 'UTC')
) AS ptoken,
(
    SELECT (any(staking_health_modifier), any(stake_collateral_ratio))
    FROM market_config
    WHERE observed_at = markets.1 AND version = markets.2
) AS rules
SELECT
    i.address AS address,
    i.account_index AS account_index,
    i.kind AS kind,
    i.asset_id AS asset_id,
    i.usd IS NULL AS unpriced,
    toDecimal256(ifNull(i.units, 0), 18) * ifNull(i.price, 0) AS exact,
    exact * ifNull(multiIf(kind = 'collateral', c.liquidation_ltv, kind = 'stake', s.health_weight, 0), 0) AS weighted,
    assumeNotNull(rules.1) AS largest_boost,
    assumeNotNull(rules.2) AS stake_ratio
FROM position_at(at = {at:String}) AS i
LEFT JOIN (SELECT * FROM market_collateral FINAL WHERE observed_at = markets.1 AND version = markets.2) AS c
    ON c.asset_id = i.asset_id
LEFT JOIN (SELECT * FROM ptoken_pool FINAL WHERE observed_at = ptoken.1 AND version = ptoken.2) AS s
    ON s.pool = i.pool
WHERE i.kind IN ('collateral', 'debt', 'account', 'stake')
SETTINGS join_use_nulls = 1
COMMENT 'What makes up the health of accounts at an instant; account_at sums it up';

CREATE OR REPLACE VIEW account_at
AS WITH
{functions},
accounts AS
(
    SELECT
        address,
        account_index,
        sumIf(exact, kind = 'collateral') AS posted,
        sumIf(exact, kind = 'debt') AS owed,
        -- Whole numbers: of 10^-36, and of 10^-54, the stake and what gives the largest boost.
        reinterpretAsInt256(owed) AS debt,
        reinterpretAsInt256(sumIf(weighted, kind = 'collateral')) AS secured,
        reinterpretAsInt256(sumIf(weighted, kind = 'stake')) AS staked,
        reinterpretAsInt256(posted * any(stake_ratio)) AS required,
        reinterpretAsInt256(toDecimal256(any(largest_boost), 18)) AS largest,
        countIf(kind = 'collateral' AND unpriced) AS unpriced_collaterals,
        countIf(kind = 'debt' AND unpriced) AS unpriced_debts
    FROM account_item_at(at = {at:String})
    GROUP BY address, account_index
    HAVING countIf(kind != 'stake') > 0
),
rated AS
(
    SELECT
        *,
        divided(secured, nullIf(debt, 0)) AS base,
        -- A long division in groups of six digits of the largest boost, because the whole product exceeds 256 bits.
        arrayFold(
            (done, digits) -> (
                done.1 * 1000000 + intDiv(done.2 * 1000000 + digits * staked, greatest(required, 1)),
                (done.2 * 1000000 + digits * staked) % greatest(required, 1)),
            [intDiv(largest, 1000000000000), intDiv(largest, 1000000) % 1000000, largest % 1000000],
            (toInt256(0), toInt256(0))) AS part
    FROM accounts
)
SELECT
    address,
    account_index,
    toDecimal128(roundBankers(posted, 18), 18) AS collateral_usd,
    toDecimal128(roundBankers(owed, 18), 18) AS debt_usd,
    toDecimal128(ratio(debt, reinterpretAsInt256(posted)), 18) AS ltv,
    toDecimal128(base + boost, 18) AS health,
    toDecimal128(base, 18) AS base,
    toDecimal128(multiIf(
        debt = 0, NULL,
        required = 0, 0,
        staked >= required, half_even(largest, 0, 1),
        half_even(part.1, part.2, required)), 18) AS boost,
    unpriced_collaterals,
    unpriced_debts
FROM rated
SETTINGS join_use_nulls = 1
COMMENT 'Every borrow account at an instant: FROM account_at(at = \'2026-03-01 12:00:00\')';

CREATE OR REPLACE VIEW account
(
    address String COMMENT 'Address of the user, in lower case',
    account_index UInt32 COMMENT 'Index of the account among those of the address',
    collateral_usd Decimal(38, 18) COMMENT 'USD value of the collateral',
    debt_usd Decimal(38, 18) COMMENT 'USD value of the debt, with interest',
    ltv Nullable(Decimal(38, 18)) COMMENT 'Debt divided by collateral, as a fraction; null without collateral',
    health Nullable(Decimal(38, 18)) COMMENT 'Health, as the HTTP service states it: below 1 the account can be liquidated; null without debt',
    base Nullable(Decimal(38, 18)) COMMENT 'The part of health from collateral: its value times the liquidation LTV, divided by the debt; null without debt',
    boost Nullable(Decimal(38, 18)) COMMENT 'The part of health from staked protocol token; null without debt',
    unpriced_collaterals UInt64 COMMENT 'Number of collaterals without a price, which count as nothing in all figures',
    unpriced_debts UInt64 COMMENT 'Number of debts without a price, which count as nothing in all figures'
)
AS SELECT address, account_index, collateral_usd, debt_usd, ltv, health, base, boost, unpriced_collaterals, unpriced_debts
FROM account_at(at = '2106-01-01')
COMMENT 'Every borrow account now; account_at has the same columns';

CREATE OR REPLACE VIEW borrower
(
    rank UInt64 COMMENT 'Place among borrowers by debt, from 1',
    address String COMMENT 'Address of the borrower, in lower case',
    accounts UInt64 COMMENT 'Number of borrow accounts with a debt',
    collateral_usd Decimal(38, 18) COMMENT 'USD value of the collateral of these accounts',
    debt_usd Decimal(38, 18) COMMENT 'USD value of the debt, with interest',
    ltv Nullable(Decimal(38, 18)) COMMENT 'Debt divided by collateral, as a fraction; null without collateral',
    health Nullable(Decimal(38, 18)) COMMENT 'The least health of these accounts; below 1 that account can be liquidated'
)
AS WITH
{functions}
SELECT
    row_number() OVER (ORDER BY debt_usd DESC, address) AS rank,
    address,
    count() AS accounts,
    sum(a.collateral_usd) AS collateral_usd,
    sum(a.debt_usd) AS debt_usd,
    ratio(reinterpretAsInt256(debt_usd), reinterpretAsInt256(collateral_usd)) AS ltv,
    min(a.health) AS health
FROM account AS a
WHERE a.health IS NOT NULL
GROUP BY address
COMMENT 'Every address that owes a debt now';
