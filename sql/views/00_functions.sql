-- Functions of the views. Fills {functions}.
-- The instant of a snapshot; null if there was none.
(second -> CAST(nullIf(toUnixTimestamp(second), 0), 'Nullable(DateTime64(3, \'UTC\'))')) AS instant_of,
-- An amount in standard units.
((amount, decimals) -> toFloat64(amount) / exp10(decimals)) AS in_units,
-- The amount behind shares of a balance, rounded down like the service's if 256 bits hold the product.
((shares, balance, supply) -> if(bitShiftRight(bitOr(shares, balance), 128) = 0,
    toFloat64(intDiv(shares * balance, greatest(supply, 1))),
    toFloat64(shares) * toFloat64(balance) / toFloat64(greatest(supply, 1)))) AS behind,
-- The standard units of an asset that a receipt token redeems: 1 while there are no receipt tokens.
((principal, supply, more_decimals) -> if(supply = 0, 1, toFloat64(principal) / toFloat64(supply) * exp10(more_decimals)))
    AS redeemed_by_each,
-- The price of an asset, from the quotes along its redemption chain, and the redemption ratio of each step. A missing
-- quote is NaN; a lost quote is infinite, and so is a derived price that cannot be stored. Ratios and prices have 18
-- decimals, like the service's, which matters for tiny values.
((quotes, ratios) -> arrayFold(
    (below, quote, ratio) -> multiIf(
        isFinite(quote) OR isNaN(below * ratio), quote,
        below * ratio >= 1e20 OR (below * ratio > 0 AND round(below * round(ratio, 18), 18) = 0), inf,
        round(below * round(ratio, 18), 18)),
    arrayReverse(quotes), arrayReverse(ratios), nan)) AS price_on_line,
-- A summand of a sum in USD: NaN if the item has lost its price, 0 if it never had a price.
((usd, lost) -> ifNull(usd, if(lost, nan, 0))) AS summand,
-- A sum of summands; null if a summand is unknown.
(total -> if(isNaN(total), NULL, total)) AS if_known,
-- The part of health from stakes. It is largest if the stake reaches a part of the collateral's value.
((staked, posted, part, largest) -> if(posted > 0, largest * least(1, ifNotFinite(staked / (posted * part), 1)), 0)) AS boosted
