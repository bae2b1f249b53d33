-- On how many of the 90 days before today would each account, as it is now, have had a health below 1.1?
-- An estimate: present collateral and debt at the known prices and LTVs at the end of each day, without boosts.
SELECT address, account_index, countIf(round(health, 12) < 1.1) AS days, round(min(health), 4) AS least_health
FROM
(
    WITH p.units * m.price AS usd
    SELECT address, account_index, sumIf(usd, kind = 'debt') AS debt,
        sumIf(usd * ifNull(p.liquidation_ltv, m.liquidation_ltv), kind = 'collateral') / debt AS health
    FROM position_now AS p INNER JOIN market_day AS m ON m.asset_id = p.asset_id
    WHERE kind IN ('collateral', 'debt') AND m.observed_at < toStartOfDay(now('UTC'))
        AND m.observed_at >= toStartOfDay(now('UTC')) - INTERVAL 90 DAY
    GROUP BY address, account_index, m.observed_at HAVING NOT max(m.price IS NULL AND (p.price IS NOT NULL OR lost))
)
WHERE debt > 0 GROUP BY address, account_index HAVING days > 0
ORDER BY days DESC, least_health, address, account_index;
