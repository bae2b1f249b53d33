-- Who owes most, at which LTV and health? An account with a health below 1 can be liquidated.
SELECT rank, address, accounts, round(collateral_usd, 2) AS collateral_usd, round(debt_usd, 2) AS debt_usd,
    round(ltv, 4) AS ltv, round(health, 4) AS least_health
FROM borrower
WHERE rank <= 20
ORDER BY rank;
