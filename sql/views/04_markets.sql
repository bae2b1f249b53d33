-- Markets in standard units and USD.

CREATE OR REPLACE VIEW {name}{on_cluster}
(
    observed_at DateTime64(3, 'UTC') COMMENT 'Instant of the snapshot',
    asset_id String COMMENT 'Asset id',
    symbol String COMMENT 'Symbol of the asset',
    price Nullable(Float64) COMMENT 'USD per standard unit at the snapshot. Null if unknown; then all USD values are null, too',
    lend_apr Nullable(Float64) COMMENT 'Yearly rate that lenders earn, without compounding, as a fraction. Null without a lend market',
    borrow_apr Nullable(Float64) COMMENT 'Yearly rate that borrowers owe, without compounding, as a fraction. Null without a debt market',
    utilization Nullable(Float64) COMMENT 'Debt divided by deposits, as a fraction. Null without deposits',
    deposits Nullable(Float64) COMMENT 'Amount owed to lenders, in standard units',
    deposits_usd Nullable(Float64) COMMENT 'USD value of the deposits. Null for a receipt token, which its origin\'s deposits include',
    debt Nullable(Float64) COMMENT 'Debt including interest, in standard units',
    debt_usd Nullable(Float64) COMMENT 'USD value of the debt',
    collateral Nullable(Float64) COMMENT 'Collateral posted, in standard units',
    collateral_usd Nullable(Float64) COMMENT 'USD value of the collateral',
    tvl_usd Nullable(Float64) COMMENT 'Share of the total value locked: deposits and collateral. 0 for a receipt token, which its origin\'s deposits include',
    redemption_ratio Nullable(Float64) COMMENT 'Standard units of the asset that one receipt token redeems',
    allowable_ltv Nullable(Float64) COMMENT 'Loan-to-value ratio up to which withdrawals and borrows are allowed, a fraction',
    liquidation_ltv Nullable(Float64) COMMENT 'Loan-to-value ratio from which collateral is liquidated, a fraction',
    collateral_cap Nullable(Float64) COMMENT 'Largest total that may be posted, in standard units. Null if there is no limit',
    borrow_cap Nullable(Float64) COMMENT 'Largest total that may be borrowed, in standard units. Null if there is no limit',
    supply_cap Nullable(Float64) COMMENT 'Largest total that may be lent, in standard units. Null if there is no limit, or the source does not say',
    collateral_enabled Nullable(Bool) COMMENT 'Whether the asset counts as collateral. Null without a collateral market',
    borrow_enabled Nullable(Bool) COMMENT 'Whether the asset can be borrowed. Null without a debt market',
    borrow_halt_utilization Nullable(Float64) COMMENT 'Highest utilization at which new loans can be opened, a fraction',
    interest_fee Nullable(Float64) COMMENT 'Part of the interest that the protocol keeps, a fraction',
    min_discount Nullable(Float64) COMMENT 'Smallest discount of a liquidation, a fraction',
    max_discount Nullable(Float64) COMMENT 'Largest discount of a liquidation, a fraction',
    paused Nullable(Bool) COMMENT 'Whether a market of the asset is paused: nobody can act in it. Null if the source does not say',
    frozen Nullable(Bool) COMMENT 'Whether a market of the asset is frozen: funds can only be withdrawn or repaid. Null if the source does not say'
)
AS WITH
{functions},
parts AS
(
    SELECT
        observed_at, version, l.asset_id AS asset_id, apr AS lend_apr, principal,
        redeemed_by_each(principal, receipt_supply, ifNull(a.receipt_decimals - a.decimals, 0)) AS redeemed,
        NULL AS borrow_apr, NULL AS owed, NULL AS owed_at_most, NULL AS posted, NULL AS posted_at_most,
        NULL AS allowable, NULL AS liquidation, NULL AS quote, supply_cap AS lent_at_most, paused, frozen,
        NULL AS can_secure, NULL AS least_discount, NULL AS largest_discount,
        NULL AS can_borrow, NULL AS halted_at, NULL AS fee
    FROM market_lend AS l FINAL
    LEFT JOIN all_assets AS a ON a.asset_id = l.asset_id

    UNION ALL

    SELECT
        observed_at, version, asset_id, NULL, NULL, NULL, apr, balance, borrow_cap, NULL, NULL, NULL, NULL, NULL, NULL,
        paused, frozen, NULL, NULL, NULL, enabled, borrow_halt_utilization, interest_fee
    FROM market_debt FINAL

    UNION ALL

    SELECT
        observed_at, version, asset_id, NULL, NULL, NULL, NULL, NULL, NULL, balance, collateral_cap, allowable_ltv,
        liquidation_ltv, NULL, NULL, paused, frozen, enabled, min_discount, max_discount, NULL, NULL, NULL
    FROM market_collateral FINAL

    UNION ALL

    SELECT
        observed_at, version, asset_id, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, price, NULL, NULL, NULL,
        NULL, NULL, NULL, NULL, NULL, NULL
    FROM market_price FINAL
),
-- Price and redemption ratio of an asset decide the price of its receipt token, so each row of the asset is also a row of
-- the token, and of the token's own receipt token.
merged AS
(
    SELECT
        p.observed_at AS observed_at,
        ifNull(c.asset_id, p.asset_id) AS asset_id,
        anyIf(p.lend_apr, (ifNull(c.step, 1) = 1) AS own) AS lend_apr,
        anyIf(p.principal, own) AS principal,
        anyIf(p.redeemed, own) AS redeemed,
        anyIf(p.borrow_apr, own) AS borrow_apr,
        anyIf(p.owed, own) AS owed,
        anyIf(p.owed_at_most, own) AS owed_at_most,
        anyIf(p.posted, own) AS posted,
        anyIf(p.posted_at_most, own) AS posted_at_most,
        anyIf(p.allowable, own) AS allowable,
        anyIf(p.liquidation, own) AS liquidation,
        anyIf(p.lent_at_most, own) AS lent_at_most,
        maxIf(p.paused, own) AS paused,
        maxIf(p.frozen, own) AS frozen,
        anyIf(p.can_secure, own) AS can_secure,
        anyIf(p.least_discount, own) AS least_discount,
        anyIf(p.largest_discount, own) AS largest_discount,
        anyIf(p.can_borrow, own) AS can_borrow,
        anyIf(p.halted_at, own) AS halted_at,
        anyIf(p.fee, own) AS fee,
        price_on_line(
            groupArrayInsertAt(nan, 5)(toFloat64(p.quote), toUInt8(ifNull(c.step, 1) - 1)),
            groupArrayInsertAt(nan, 5)(if(c.step > 1, p.redeemed, NULL), toUInt8(greatest(ifNull(c.step, 1), 2) - 2))) AS priced
    FROM parts AS p
    LEFT JOIN asset_line AS c ON c.origin_id = p.asset_id
    -- The last of several commits for an instant counts. Snapshots from the future do not count yet.
    WHERE (p.observed_at, p.version) IN
    (
        SELECT max((at, version))
        FROM snapshot
        WHERE dataset = 'markets' AND kind IN ('job', 'backfill') AND at <= now() + 60
        GROUP BY {period}
    )
    GROUP BY observed_at, asset_id
    HAVING principal IS NOT NULL OR owed IS NOT NULL OR posted IS NOT NULL
)
SELECT
    m.observed_at AS observed_at,
    m.asset_id AS asset_id,
    ifNull(a.symbol, '') AS symbol,
    if(isFinite(m.priced), m.priced, NULL) AS price,
    toFloat64(m.lend_apr) AS lend_apr,
    toFloat64(m.borrow_apr) AS borrow_apr,
    ifNull(toFloat64(m.owed), 0) / nullIf(toFloat64(m.principal), 0) AS utilization,
    in_units(m.principal, a.decimals) AS deposits,
    if(a.kind = 'protocol_receipt_token', NULL, deposits * price) AS deposits_usd,
    in_units(m.owed, a.decimals) AS debt,
    debt * price AS debt_usd,
    in_units(m.posted, a.decimals) AS collateral,
    collateral * price AS collateral_usd,
    multiIf(a.kind = 'protocol_receipt_token', 0, price IS NULL, NULL, ifNull(deposits_usd, 0) + ifNull(collateral_usd, 0))
        AS tvl_usd,
    round(m.redeemed, 18) AS redemption_ratio,
    toFloat64(m.allowable) AS allowable_ltv,
    toFloat64(m.liquidation) AS liquidation_ltv,
    in_units(m.posted_at_most, a.decimals) AS collateral_cap,
    in_units(m.owed_at_most, a.decimals) AS borrow_cap,
    in_units(m.lent_at_most, a.decimals) AS supply_cap,
    m.can_secure AS collateral_enabled,
    m.can_borrow AS borrow_enabled,
    toFloat64(m.halted_at) AS borrow_halt_utilization,
    toFloat64(m.fee) AS interest_fee,
    toFloat64(m.least_discount) AS min_discount,
    toFloat64(m.largest_discount) AS max_discount,
    m.paused AS paused,
    m.frozen AS frozen
FROM merged AS m
LEFT JOIN all_assets AS a ON a.asset_id = m.asset_id
SETTINGS join_use_nulls = 1
COMMENT 'Every asset\'s markets at {when}, valued at the prices of that snapshot';
