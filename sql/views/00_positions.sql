-- Items of addresses at an instant. Fills {positions}, after {functions}. Raises before the first snapshot. A view with
-- parameters is analyzed twice for each view that reads it, so slow views share this text instead.
{instant},
(
    SELECT maxIf((at, version), at <= instant)
    FROM snapshot
    WHERE dataset = 'markets' AND kind IN ('job', 'backfill')
    HAVING NOT throwIf(min(at) > instant, concat('Snapshots of markets begin at ', (
        SELECT toString(min(at)) FROM snapshot WHERE dataset = 'markets' AND kind IN ('job', 'backfill'))))
) AS markets,
(
    SELECT maxIf((at, version), at <= instant)
    FROM snapshot
    WHERE dataset = 'ptoken' AND kind IN ('job', 'backfill')
    HAVING NOT throwIf(min(at) > instant, concat('Snapshots of the protocol token begin at ', (
        SELECT toString(min(at)) FROM snapshot WHERE dataset = 'ptoken' AND kind IN ('job', 'backfill'))))
) AS ptoken,
(
    SELECT maxIf(at, at <= instant)
    FROM snapshot
    WHERE dataset = 'positions'
    HAVING NOT throwIf(min(at) > instant, concat('Snapshots of positions begin at ', (
        SELECT toString(min(at)) FROM snapshot WHERE dataset = 'positions')))
) AS known,
(SELECT any(asset_id) FROM ptoken_state WHERE observed_at = ptoken.1 AND version = ptoken.2) AS ptoken_id,
{prices},
items AS
(
    SELECT
        address,
        kind,
        account_index,
        if(asset_id = '' AND kind != 'account', ptoken_id, asset_id) AS asset_id,
        pool,
        argMax((amount, until, closed, p.observed_at, allowable_ltv, liquidation_ltv), p.observed_at) AS last
    FROM position_change AS p
    WHERE p.observed_at <= known
      AND (observed_at, version) IN (SELECT at, version FROM snapshot WHERE dataset = 'positions')
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
        c.liquidation_ltv AS market_ltv,
        a.symbol AS symbol,
        -- Sums over kinds need a number for each item: denom units if the asset is not defined.
        assumeNotNull(in_units(amount, ifNull(a.decimals, 0))) AS units,
        -- An item of an ended asset has an unknown value, but in borrow accounts it counts as 0, so that risk stays known.
        i.last.1 != 0 AND i.kind NOT IN ('collateral', 'debt', 'stake') AND
            ifNull(a.ended_at < ifNull(taken, instant), 0) AS has_ended
    FROM items AS i
    LEFT JOIN (SELECT * FROM market_collateral FINAL WHERE observed_at = markets.1 AND version = markets.2) AS c
        ON c.asset_id = i.asset_id
    LEFT JOIN (SELECT * FROM market_debt FINAL WHERE observed_at = markets.1 AND version = markets.2) AS d
        ON d.asset_id = i.asset_id
    LEFT JOIN (SELECT * FROM market_lend FINAL WHERE observed_at = markets.1 AND version = markets.2) AS l
        ON l.asset_id = i.asset_id
    LEFT JOIN all_assets AS a ON a.asset_id = i.asset_id
    SETTINGS join_use_nulls = 1
),
positions AS
(
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
        toFloat64(i.market_ltv) AS market_ltv,
        assumeNotNull(toDateTime64(known, 3, 'UTC')) AS positions_at,
        instant_of(markets.1) AS markets_at,
        instant_of(taken) AS prices_at
    FROM amounts AS i
    LEFT JOIN prices AS p ON p.asset_id = i.asset_id
    SETTINGS join_use_nulls = 1
)
