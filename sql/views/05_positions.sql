-- What addresses have, in standard units and USD.

CREATE OR REPLACE VIEW position_at{on_cluster}
AS WITH
{functions},
{instant},
{runs},
(
    SELECT maxIf(at, at <= instant)
    FROM snapshot
    WHERE family = 'positions'
    HAVING NOT throwIf(min(at) > instant, 'This time is before the first snapshot of positions')
) AS known,
(SELECT maxOrNull(at) FROM snapshot WHERE family = 'prices' AND kind IN ('job', 'backfill') AND at <= instant) AS priced,
(SELECT any(asset_id) FROM ptoken_state WHERE observed_at = ptoken.1 AND version = ptoken.2) AS ptoken_id,
items AS
(
    SELECT
        address,
        kind,
        account_index,
        if(asset_id = '' AND kind != 'account', ptoken_id, asset_id) AS asset_id,
        pool,
        argMax((amount, until, closed, p.observed_at, allowable_ltv, liquidation_ltv), p.observed_at) AS last
    FROM position AS p
    WHERE p.observed_at <= known
      AND (observed_at, version) IN (SELECT at, version FROM snapshot WHERE family = 'positions')
    GROUP BY address, kind, account_index, p.asset_id, pool, item
    HAVING NOT last.3
),
amounts AS
(
    SELECT
        i.* EXCEPT last,
        multiIf(
            i.kind = 'account', 0,
            i.kind = 'collateral', behind(i.last.1, ifNull(c.balance, 0), ifNull(c.shares, 0)),
            i.kind = 'debt', behind(i.last.1, ifNull(d.balance, 0), ifNull(d.shares, 0)),
            i.kind NOT IN ('lend_held', 'lend_collateralized'), toFloat64(i.last.1),
            l.receipt_supply = 0, toFloat64(i.last.1) * exp10(ifNull(a.decimals - a.receipt_decimals, 0)),
            behind(i.last.1, ifNull(l.principal, 0), ifNull(l.receipt_supply, 0))) AS amount,
        i.last.2 AS until,
        i.last.4 AS since,
        i.last.5 AS allowable_ltv,
        i.last.6 AS liquidation_ltv,
        a.symbol AS symbol,
        -- Sums of several kinds need a number of each: of an asset that is not defined, denom units.
        assumeNotNull(in_units(amount, ifNull(a.decimals, 0))) AS units,
        -- Risk goes on without what accounts have of an asset that ended, but nothing else is worth 0 because of that.
        i.last.1 != 0 AND i.kind NOT IN ('collateral', 'debt', 'stake') AND
            ifNull(a.ended_at < ifNull(priced, instant), 0) AS has_ended
    FROM items AS i
    LEFT JOIN (SELECT * FROM market_collateral FINAL WHERE observed_at = markets.1 AND version = markets.2) AS c
        ON c.asset_id = i.asset_id
    LEFT JOIN (SELECT * FROM market_debt FINAL WHERE observed_at = markets.1 AND version = markets.2) AS d
        ON d.asset_id = i.asset_id
    LEFT JOIN (SELECT * FROM market_lend FINAL WHERE observed_at = markets.1 AND version = markets.2) AS l
        ON l.asset_id = i.asset_id
    LEFT JOIN all_assets AS a ON a.asset_id = i.asset_id
)
SELECT
    i.address AS address,
    CAST(i.kind, 'String') AS kind,
    i.account_index AS account_index,
    ifNull(i.asset_id, '') AS asset_id,
    ifNull(i.symbol, '') AS symbol,
    i.pool AS pool,
    i.units AS units,
    p.price AS price,
    units * price AS usd,
    toBool(i.has_ended OR units != 0 AND price IS NULL AND p.asset_id IS NOT NULL) AS lost,
    CAST(i.until, 'Nullable(DateTime64(3, \'UTC\'))') AS until,
    toDateTime64(i.since, 3, 'UTC') AS since,
    toFloat64(i.allowable_ltv) AS allowable_ltv,
    toFloat64(i.liquidation_ltv) AS liquidation_ltv,
    assumeNotNull(toDateTime64(known, 3, 'UTC')) AS positions_at,
    instant_of(markets.1) AS markets_at,
    instant_of(priced) AS prices_at
FROM amounts AS i
LEFT JOIN price_at(time = {time:String}) AS p ON p.asset_id = i.asset_id
SETTINGS join_use_nulls = 1
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
