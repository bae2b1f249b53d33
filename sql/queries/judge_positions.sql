-- Where do addresses have another amount than the market: how serious it is, what it is with … for names, and a name.
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
