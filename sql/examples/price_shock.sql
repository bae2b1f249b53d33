-- How many accounts could be liquidated if one asset fell by 20 %, and how much would they owe?
-- Tokens that stand for it fall, too. The boost from stakes is left out, as are accounts that are below 1 already.
WITH ltvs AS (SELECT asset_id, argMax(liquidation_ltv, observed_at) AS ltv FROM market_day GROUP BY asset_id)
SELECT origin AS asset_id, origin_symbol AS symbol, count() AS accounts, sum(all_owed - owed / 5) AS debt_usd
FROM
(
    SELECT o.asset_id AS origin, o.symbol AS origin_symbol, sum(if(p.kind = 'debt', usd, 0)) AS owed,
        sum(if(p.kind = 'debt', 0, toDecimal256(usd, 18) * ltv)) AS secured,
        sum(owed) OVER account AS all_owed, sum(secured) OVER account AS all_secured
    FROM position_now AS p INNER JOIN ltvs USING (asset_id) INNER JOIN assets AS a USING (asset_id)
    INNER JOIN assets AS o ON o.asset_id = if(a.origin_id = '', p.asset_id, a.origin_id)
    WHERE p.kind IN ('collateral', 'debt') AND usd IS NOT NULL
    GROUP BY address, account_index, origin, origin_symbol WINDOW account AS (PARTITION BY address, account_index)
) WHERE all_secured >= all_owed AND all_secured - secured / 5 < all_owed - owed / 5
GROUP BY ALL ORDER BY debt_usd DESC, asset_id;
