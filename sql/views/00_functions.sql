-- What the views calculate with, in place of {functions}.
-- An amount in standard units.
((amount, decimals) -> toFloat64(amount) / exp10(decimals)) AS in_units,
-- The amount behind shares of a balance, rounded down as the service does where 256 bits hold the product.
((shares, balance, supply) -> if(bitShiftRight(bitOr(shares, balance), 128) = 0,
    toFloat64(intDiv(shares * balance, greatest(supply, 1))),
    toFloat64(shares) * toFloat64(balance) / toFloat64(greatest(supply, 1)))) AS behind,
-- The units of an asset that a receipt token redeems: 1 while there are no receipt tokens.
((principal, supply) -> if(supply = 0, 1, toFloat64(principal) / toFloat64(supply))) AS redeemed_by_each,
-- A summand of a sum in USD: not a number if the item's price is lost, nothing if it never had one.
((usd, lost) -> ifNull(usd, if(lost, nan, 0))) AS summand,
-- Such a sum; null if something in it is unknown.
(total -> if(isNaN(total), NULL, total)) AS if_known,
-- The part of health from a stake, which is largest from a part of the collateral's value on.
((staked, posted, part, largest) -> if(posted > 0, largest * least(1, ifNotFinite(staked / (posted * part), 1)), 0)) AS boosted
