-- What looks wrong in the newest prices, and in definitions of assets: how serious it is, what it is with … for names, and a name.
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
