-- How much could be liquidated if the price of the asset with most collateral fell, by steps of 5 % down to 95 %? Each
-- step has all such accounts, with values at its price: accounts that owe the asset recover as it falls.
SELECT change, price, accounts, collateral_usd, debt_usd, bad_debt_usd
FROM risk_ladder(time = toUnixTimestamp(now()), asset_id = (SELECT argMax(asset_id, usd)
    FROM (SELECT asset_id, sum(usd) AS usd FROM position_now WHERE kind = 'collateral' GROUP BY asset_id)))
WHERE change <= 0
ORDER BY change DESC;
