-- Markets in standard units and USD.

CREATE OR REPLACE VIEW {name}
(
    observed_at DateTime64(3, 'UTC') COMMENT 'Instant of the snapshot',
    asset_id String COMMENT 'Asset id',
    symbol String COMMENT 'Symbol of the asset',
    price Nullable(Decimal(38, 18)) COMMENT 'USD per standard unit at the snapshot; null if unknown, as are all USD values then',
    lend_apr Nullable(Decimal(38, 18)) COMMENT 'Yearly rate that lenders earn, without compounding, as a fraction; null without a lend market',
    borrow_apr Nullable(Decimal(38, 18)) COMMENT 'Yearly rate that borrowers owe, without compounding, as a fraction; null without a debt market',
    utilization Nullable(Decimal(38, 18)) COMMENT 'Debt divided by deposits, as a fraction; null without deposits',
    deposits Nullable(Decimal(38, 18)) COMMENT 'Amount owed to lenders, in standard units',
    deposits_usd Nullable(Decimal(38, 18)) COMMENT 'USD value of the deposits',
    debt Nullable(Decimal(38, 18)) COMMENT 'Debt including interest, in standard units',
    debt_usd Nullable(Decimal(38, 18)) COMMENT 'USD value of the debt',
    collateral Nullable(Decimal(38, 18)) COMMENT 'Collateral posted, in standard units',
    collateral_usd Nullable(Decimal(38, 18)) COMMENT 'USD value of the collateral',
    tvl_usd Nullable(Decimal(38, 18)) COMMENT 'The part of the total value locked: deposits, and collateral that is no receipt token',
    redemption_ratio Nullable(Decimal(38, 18)) COMMENT 'Units of the asset that a receipt token redeems',
    allowable_ltv Nullable(Decimal(38, 18)) COMMENT 'Loan-to-value ratio up to which withdrawals and borrows are allowed, a fraction',
    liquidation_ltv Nullable(Decimal(38, 18)) COMMENT 'Loan-to-value ratio from which collateral is liquidated, a fraction',
    collateral_cap Nullable(Decimal(38, 18)) COMMENT 'Largest total that may be posted, in standard units; null means no limit',
    borrow_cap Nullable(Decimal(38, 18)) COMMENT 'Largest total that may be borrowed, in standard units; null means no limit'
)
AS WITH
{functions},
-- Of several runs for an instant the last one counts.
runs AS
(
    SELECT run.1, run.2
    FROM (SELECT max((at, version)) AS run FROM snapshot WHERE family = 'markets' AND kind IN ('job', 'backfill') GROUP BY {period})
),
lent AS
(
    SELECT l.*, redeemed_by_each(principal, receipt_supply) AS redemption
    FROM market_lend AS l FINAL
    WHERE (observed_at, version) IN runs
),
posted AS (SELECT * FROM market_collateral FINAL WHERE (observed_at, version) IN runs),
owed AS (SELECT * FROM market_debt FINAL WHERE (observed_at, version) IN runs),
priced AS (SELECT * FROM market_price FINAL WHERE (observed_at, version) IN runs),
receipts AS
(
    SELECT l.observed_at AS observed_at, l.version AS version, a.receipt_id AS asset_id, in_usd(toDecimal256(l.redemption, 18), p.price) AS price
    FROM lent AS l
    INNER JOIN priced AS p USING (observed_at, version, asset_id)
    INNER JOIN assets AS a ON a.asset_id = l.asset_id
    WHERE a.receipt_id != ''
)
SELECT
    m.observed_at AS observed_at,
    m.asset_id AS asset_id,
    ifNull(a.symbol, '') AS symbol,
    ifNull(p.price, r.price) AS price,
    l.apr AS lend_apr,
    d.apr AS borrow_apr,
    ratio(ifNull(d.balance, 0), l.principal) AS utilization,
    in_units(l.principal, a.decimals) AS deposits,
    in_usd(deposits, price) AS deposits_usd,
    in_units(d.balance, a.decimals) AS debt,
    in_usd(debt, price) AS debt_usd,
    in_units(c.balance, a.decimals) AS collateral,
    in_usd(collateral, price) AS collateral_usd,
    if(price IS NULL, NULL, ifNull(deposits_usd, 0) + if(a.kind = 'protocol_receipt_token', 0, ifNull(collateral_usd, 0)))
        AS tvl_usd,
    l.redemption AS redemption_ratio,
    c.allowable_ltv AS allowable_ltv,
    c.liquidation_ltv AS liquidation_ltv,
    in_units(c.collateral_cap, a.decimals) AS collateral_cap,
    in_units(d.borrow_cap, a.decimals) AS borrow_cap
FROM
(
    SELECT observed_at, version, asset_id FROM lent
    UNION DISTINCT
    SELECT observed_at, version, asset_id FROM posted
    UNION DISTINCT
    SELECT observed_at, version, asset_id FROM owed
) AS m
LEFT JOIN lent AS l USING (observed_at, version, asset_id)
LEFT JOIN posted AS c USING (observed_at, version, asset_id)
LEFT JOIN owed AS d USING (observed_at, version, asset_id)
LEFT JOIN priced AS p USING (observed_at, version, asset_id)
LEFT JOIN receipts AS r USING (observed_at, version, asset_id)
LEFT JOIN assets AS a ON a.asset_id = m.asset_id
SETTINGS join_use_nulls = 1
COMMENT 'Every market at {when}, at the prices of that snapshot';
