-- The history of borrow accounts.

CREATE OR REPLACE VIEW account_history{on_cluster}
(
    address String COMMENT 'Address of the user, in lower case',
    account_index UInt32 COMMENT 'Index of the account among the accounts of the address',
    observed_at DateTime64(3, 'UTC') COMMENT 'Instant of the snapshot of positions',
    {account_columns},
    {snapshot_columns}
)
AS WITH
{functions},
changes AS
(
    SELECT kind, account_index, p.asset_id AS asset_id, pool, item, observed_at, amount, closed, liquidation_ltv
    FROM position_change AS p
    WHERE address = lower({address:String})
      AND kind IN ('collateral', 'debt', 'account', 'stake')
      AND (observed_at, version) IN (SELECT at, version FROM snapshot WHERE dataset = 'positions')
),
-- Snapshots from the future do not count yet (rule 8.16, future snapshots).
taken AS
(
    SELECT 1 AS one, toString(dataset) AS name, at, max(version) AS version
    FROM snapshot
    WHERE dataset IN ('positions', 'markets', 'ptoken', 'prices')
      AND kind IN ('job', 'backfill')
      AND at <= now('UTC') + INTERVAL 60 SECOND
    GROUP BY name, at
),
-- The snapshots of positions, and the newest snapshots of other datasets as of each.
moments AS
(
    SELECT
        p.at AS at,
        (m.at, m.version) AS markets,
        (t.at, t.version) AS ptoken,
        q.at AS priced_at
    FROM (SELECT one, at FROM taken WHERE name = 'positions' AND at >= (SELECT min(observed_at) FROM changes)) AS p
    ASOF JOIN (SELECT * FROM taken WHERE name = 'markets') AS m ON m.one = p.one AND p.at >= m.at
    ASOF LEFT JOIN (SELECT * FROM taken WHERE name = 'ptoken') AS t ON t.one = p.one AND p.at >= t.at
    ASOF LEFT JOIN (SELECT * FROM taken WHERE name = 'prices') AS q ON q.one = p.one AND p.at >= q.at
),
items AS
(
    SELECT s.at AS at, s.kind AS kind, s.account_index AS account_index, s.asset_id AS asset_id, s.pool AS pool,
        s.markets AS markets, s.ptoken AS ptoken, s.priced_at AS priced_at, c.amount AS amount, c.liquidation_ltv AS liquidation_ltv
    FROM
    (
        SELECT k.*, m.*
        FROM (SELECT DISTINCT kind, account_index, asset_id, pool, item FROM changes) AS k
        CROSS JOIN moments AS m
    ) AS s
    ASOF JOIN changes AS c
        ON c.kind = s.kind AND c.account_index = s.account_index AND c.asset_id = s.asset_id AND c.pool = s.pool
            AND c.item = s.item AND s.at >= c.observed_at
    WHERE NOT c.closed
),
tokens AS (SELECT DISTINCT observed_at, version, asset_id FROM ptoken_state),
-- Positions are on all shards, and this is executed once.
(SELECT groupUniqArray(asset_id) FROM (SELECT asset_id FROM changes UNION ALL SELECT asset_id FROM tokens)) AS asset_ids,
lines AS (SELECT asset_id, step, origin_id FROM asset_line WHERE has(asset_ids, asset_id)),
(SELECT groupUniqArray(origin_id) FROM lines) AS origin_ids,
-- The quote of each asset of a redemption chain: NaN if there is none, infinite if it is too old.
quotes AS
(
    SELECT k.asset_id AS asset_id, k.at AS at,
        multiIf(
            o.asset_id IS NULL OR a.ended_at < ifNull(k.priced_at, k.at), nan,
            k.priced_at IS NOT NULL AND dateDiff('second', o.observed_at, k.priced_at) > {price_max_age}, inf,
            o.value) AS quote,
        redeemed_by_each(l.principal, l.receipt_supply, a.receipt_decimals - a.decimals) AS ratio,
        l.asset_id IS NULL OR r.ended_at < ifNull(k.priced_at, k.at) AS redeems_nothing
    FROM
    (
        SELECT origins.asset_id AS asset_id, m.at AS at, m.markets AS markets, m.priced_at AS priced_at
        FROM (SELECT arrayJoin(origin_ids) AS asset_id) AS origins
        CROSS JOIN moments AS m
    ) AS k
    ASOF LEFT JOIN
    (
        SELECT toString(asset_id) AS asset_id, observed_at, toFloat64(value) AS value
        FROM observation FINAL
        WHERE history = 'price' AND asset_id IN (SELECT arrayJoin(origin_ids))
    ) AS o ON o.asset_id = k.asset_id AND k.at >= o.observed_at
    LEFT JOIN all_assets AS a ON a.asset_id = k.asset_id
    LEFT JOIN all_assets AS r ON r.asset_id = a.receipt_id
    LEFT JOIN (SELECT * FROM market_lend FINAL WHERE has(origin_ids, asset_id)) AS l
        ON l.asset_id = k.asset_id AND l.observed_at = k.markets.1 AND l.version = k.markets.2
),
prices AS
(
    SELECT
        l.asset_id AS asset_id,
        q.at AS at,
        groupArrayInsertAt(nan, 5)(q.quote, toUInt8(step - 1)) AS quotes,
        groupArrayInsertAt(nan, 5)(if(step = 1 OR q.redeems_nothing, NULL, q.ratio), toUInt8(greatest(step, 2) - 2)) AS ratios,
        price_on_line(quotes, ratios) AS price
    FROM lines AS l
    INNER JOIN quotes AS q ON q.asset_id = l.origin_id
    GROUP BY asset_id, at
),
valued AS
(
    SELECT
        i.at AS at,
        i.account_index AS account_index,
        i.kind AS kind,
        multiIf(
            kind = 'collateral', behind(i.amount, ifNull(c.balance, 0), ifNull(c.shares, 0)),
            kind = 'debt', behind(i.amount, ifNull(d.balance, 0), ifNull(d.shares, 0)),
            kind = 'stake', toFloat64(i.amount),
            0) AS held,
        in_units(held, ifNull(a.decimals, 0)) AS units,
        if(isFinite(p.price), units * p.price, NULL) AS usd,
        ifNull(units != 0 AND isInfinite(p.price), 0) AS lost,
        usd IS NULL AND units != 0 AS unpriced,
        ifNull(multiIf(kind = 'collateral', toFloat64(ifNull(i.liquidation_ltv, c.liquidation_ltv)), kind = 'stake', toFloat64(s.health_weight), 0), 0)
            AS weight,
        toFloat64(g.staking_health_modifier) AS largest_boost,
        -- A lost price does not matter for stakes without effect on health.
        summand(usd, lost AND (kind != 'stake' OR weight * largest_boost != 0)) AS value,
        value * weight AS weighted,
        toFloat64(g.stake_collateral_ratio) AS stake_ratio,
        i.markets.1 AS markets_at,
        i.priced_at AS prices_at
    FROM items AS i
    LEFT JOIN (SELECT * FROM market_collateral FINAL WHERE has(asset_ids, asset_id)) AS c
        ON c.asset_id = i.asset_id AND c.observed_at = i.markets.1 AND c.version = i.markets.2
    LEFT JOIN (SELECT * FROM market_debt FINAL WHERE has(asset_ids, asset_id)) AS d
        ON d.asset_id = i.asset_id AND d.observed_at = i.markets.1 AND d.version = i.markets.2
    LEFT JOIN (SELECT * FROM market_config FINAL) AS g ON g.observed_at = i.markets.1 AND g.version = i.markets.2
    LEFT JOIN tokens AS t ON t.observed_at = i.ptoken.1 AND t.version = i.ptoken.2
    LEFT JOIN (SELECT * FROM ptoken_pool FINAL) AS s
        ON s.pool = i.pool AND s.observed_at = i.ptoken.1 AND s.version = i.ptoken.2
    LEFT JOIN all_assets AS a ON a.asset_id = if(i.kind = 'stake', t.asset_id, i.asset_id)
    LEFT JOIN prices AS p ON p.asset_id = if(i.kind = 'stake', t.asset_id, i.asset_id) AND p.at = i.at
)
SELECT
    lower({address:String}) AS address,
    account_index,
    toDateTime64(at, 3, 'UTC') AS observed_at,
    {account},
    any(instant_of(v.markets_at)) AS markets_at,
    any(instant_of(v.prices_at)) AS prices_at
FROM valued AS v
GROUP BY account_index, at
HAVING countIf(kind != 'stake') > 0
SETTINGS join_use_nulls = 1
COMMENT 'The borrow accounts of an address at each snapshot of positions: FROM account_history(address = \'0x...\')';
