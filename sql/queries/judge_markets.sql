-- What looks wrong in the newest markets: how serious it is, what it is with … for names, and a name.
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
