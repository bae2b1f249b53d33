-- Which accounts have a health below 1.1? Below 1 they can be liquidated. Without accounts that owe an unpriced asset.
SELECT address, account_index, round(collateral_usd, 2) AS collateral_usd, round(debt_usd, 2) AS debt_usd,
    round(bad_debt_usd, 2) AS bad_debt_usd, round(ltv, 4) AS ltv, round(health, 4) AS health
FROM account_risk AS a
WHERE round(a.health, 12) < 1.1
ORDER BY a.health, address, account_index;
