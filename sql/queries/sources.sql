-- Views of a source in the same ClickHouse, and checks of its answers.

-- name: list_source_columns
-- The columns and types of a source's views.
SELECT table, name, type
FROM system.columns
WHERE database = {database:String} AND startsWith(table, 'source_')
ORDER BY table, position

-- name: read_source_rows
-- The rows of a source's view without times.
SELECT {columns}
FROM {database:Identifier}.{view:Identifier} AS v
ORDER BY ALL
SETTINGS max_result_bytes = {most_bytes}

-- name: read_source_snapshot
-- The rows of the newest instant of a source's view, at or before an instant.
SELECT {columns}
FROM {database:Identifier}.{view:Identifier} AS v
WHERE v.observed_at =
(
    SELECT max(v.observed_at)
    FROM {database:Identifier}.{view:Identifier} AS v
    WHERE v.observed_at <= toDateTime({at:UInt32}, 'UTC')
)
ORDER BY ALL
SETTINGS max_result_bytes = {most_bytes}

-- name: read_source_newest
-- The newest row of each key in a source's view, at or before an instant.
SELECT {columns}
FROM {database:Identifier}.{view:Identifier} AS v
WHERE ({key}, v.observed_at) IN
(
    SELECT {key}, max(v.observed_at)
    FROM {database:Identifier}.{view:Identifier} AS v
    WHERE v.observed_at <= toDateTime({at:UInt32}, 'UTC')
    GROUP BY {key}
)
ORDER BY ALL
LIMIT 1 BY {key}
SETTINGS max_result_bytes = 268435456

-- name: read_source_events
-- The events of a source in [start, end), oldest first.
SELECT {columns}
FROM {database:Identifier}.{view:Identifier} AS v
WHERE v.at >= toDateTime({start:UInt32}, 'UTC') AND v.at < toDateTime({end:UInt32}, 'UTC')
ORDER BY v.at, v.id
SETTINGS max_result_bytes = 268435456

-- name: inspect_prices
-- Anomalies of the newest prices, and of definitions of assets: severity, message with … for names, and a name.
SELECT fault.1 AS level, fault.2 AS words, concat(if(a.d.1 = '', a.asset_id, concat(a.d.1, ' (', a.asset_id, ')')), fault.3) AS name
FROM (SELECT id AS asset_id, argMax((symbol, symbol_denom, decimals_denom, ifNull(origin_asset, '')), (defined_at, version)) AS d FROM asset_definition GROUP BY id) AS a
LEFT JOIN price_now AS p ON p.asset_id = a.asset_id
ARRAY JOIN arrayFilter(each -> each.4, [
    ('warning', 'assets: more than 36 decimals_denom: …. Is it a factor instead?', '', a.d.3 > 36),
    ('warning', 'assets: the origin_asset is not among the assets: ….', '', a.d.4 != '' AND a.d.4 NOT IN (SELECT id FROM asset_definition WHERE symbol_denom != '')),
    ('note', 'prices: assets without a price, and therefore without values: ….', '', a.d.2 != '' AND p.asset_id = ''),
    ('warning', 'prices: a day old or older: …. Is observed_at the true time? A price is unknown after ANALYTICS_PRICE_MAX_AGE.', concat(' ', formatDateTime(p.observed_at, '%FT%TZ')), p.asset_id != '' AND NOT p.follows AND p.observed_at <= toDateTime({now:UInt32}, 'UTC') - INTERVAL 1 DAY),
    ('warning', 'prices: very low or very high: …. Prices are USD per standard unit.', concat(' ', toString(p.price)), NOT p.follows AND ifNull(p.price > 0 AND p.price < 1e-12 OR p.price > 1e7, false) AND p.asset_id != '')
]) AS fault
ORDER BY level, words, name
SETTINGS join_use_nulls = 0

-- name: inspect_markets
-- Anomalies of the newest markets: severity, message with … for names, and a name.
SELECT fault.1 AS level, fault.2 AS words, concat(fault.3, if(symbol = '', asset_id, concat(symbol, ' (', asset_id, ')')), fault.4) AS name
FROM market_now
ARRAY JOIN arrayFilter(each -> each.5, arrayConcat(
    arrayMap(
        field -> ('warning', 'markets: above 1, which is 100 %: …. Rates and ratios are fractions.', concat(field.1, ' of '), concat(' ', toString(field.2)), field.2 > 1),
        [('lend_apr', ifNull(lend_apr, 0)), ('borrow_apr', ifNull(borrow_apr, 0)), ('allowable_ltv', ifNull(allowable_ltv, 0)), ('liquidation_ltv', ifNull(liquidation_ltv, 0)), ('interest_fee', ifNull(interest_fee, 0)), ('max_discount', ifNull(max_discount, 0))]),
    [
        ('warning', 'markets: more debt than lend principal: …. Are both in denom units?', '', '', toUInt8(ifNull(debt > deposits * 1.01, false))),
        ('warning', 'markets: debt in assets without a price: …. Who owes them has no known health.', '', '', toUInt8(ifNull(debt > 0, false) AND price IS NULL)),
        ('warning', 'markets: hardly anything in them: …. Amounts are in denom units.', '', '', toUInt8(greatest(ifNull(deposits, 0), ifNull(collateral, 0), ifNull(debt, 0)) AS most > 0 AND most < 0.001)),
        ('warning', 'markets: worth more than 10^13 USD: …. Check decimals_denom and the price.', '', '', toUInt8(ifNull(most * price > 1e13, false)))
    ])) AS fault
ORDER BY level, words, name

-- name: inspect_positions
-- Addresses whose amounts contradict the market: severity, message with … for names, and a name.
SELECT
    'warning' AS level,
    if(held > total, 'positions: more than the market has: …. Holdings are shares, and those of lend are receipt tokens.', 'positions: less than the market has: …. Addresses are missing, or wallets with receipt tokens; or amounts are in another unit.') AS words,
    concat(has.1, ' of ', symbol, ' (', m.asset_id, ')') AS name
FROM (SELECT asset_id, symbol, has, ifNull(has.2, 0) AS total FROM market_now ARRAY JOIN [('lend', deposits), ('collateral', collateral), ('debt', debt)] AS has) AS m
LEFT JOIN
(
    SELECT asset_id, if(startsWith(kind, 'lend'), 'lend', kind) AS item, sum(units) AS held
    FROM position_now
    GROUP BY asset_id, item
) AS p ON p.asset_id = m.asset_id AND p.item = m.has.1
WHERE abs(held - total) > total / 100
ORDER BY level, words, name
SETTINGS join_use_nulls = 0

-- name: inspect_events
-- Anomalies of events: severity, message with … for names, and a name.
SELECT fault.1 AS level, fault.2 AS words, concat(action, ' at ', formatDateTime(time, '%FT%TZ'), fault.3) AS name
FROM events
ARRAY JOIN arrayFilter(each -> each.4, [
    ('warning', 'events: without usd, so they count in no sum: ….', '', toUInt8(usd IS NULL AND action IN ('borrow', 'liquidate', 'borrow_flash_loan'))),
    ('warning', 'events: usd is not amount times price: …. Amounts are in denom units.', concat(' ', toString(ifNull(usd, 0)), ' instead of ', toString(ifNull(units * price, 0))), toUInt8(ifNull(abs(units * price - usd) > greatest(0.01, usd / 100), false)))
]) AS fault
ORDER BY level, words, name
