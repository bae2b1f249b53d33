-- The values and health of a borrow account, from its items. Fills {account}.
if_known(sumIf(value, kind = 'collateral')) AS collateral_usd,
if(unpriced_debts > 0, NULL, sumIf(value, kind = 'debt')) AS debt_usd,
debt_usd / nullIf(collateral_usd, 0) AS ltv,
base + boost AS health,
-- Health is unknown if a stake is.
if(isNaN(sumIf(weighted, kind = 'stake')), NULL, if_known(sumIf(weighted, kind = 'collateral')) / nullIf(debt_usd, 0)) AS base,
if(base IS NULL, NULL, boosted(sumIf(weighted, kind = 'stake'), collateral_usd, any(stake_ratio), any(largest_boost)))
    AS boost,
countIf(kind = 'collateral' AND unpriced)
    + if(countIf(kind = 'debt' AND (unpriced OR value != 0)) > 0, countIf(kind = 'stake' AND isNaN(value)), 0)
    AS unpriced_collaterals,
countIf(kind = 'debt' AND unpriced) AS unpriced_debts
