-- What the views calculate with, in place of {functions}: decimals of 76 digits, so that every product is exact.
-- An amount in standard units: null from 10^20 of them on.
((amount, decimals) -> toDecimal256(if(toFloat64(amount) < exp10(20 + decimals), amount, NULL), 0)
    * toDecimal256(concat('1e-', toString(decimals)), 24)) AS in_units,
-- The USD value of units, rounded half to even to 18 decimals: null from 10^20 on.
((units, price) -> toDecimal128(roundBankers(
    units * if(toFloat64(units) * toFloat64(price) < 1e20, price, NULL), 18), 18)) AS in_usd,
-- The amount behind shares of a balance, rounded down: null if 256 bits may not hold the product.
((shares, balance, supply) -> if(bitShiftRight(bitOr(shares, balance), 128) = 0,
    intDiv(shares * balance, greatest(supply, 1)), NULL)) AS behind,
-- A quotient of whole numbers in units of 10^-18, rounded half to even, given what is left of the dividend.
((quotient, rest, divisor) -> toDecimal256(quotient + (2 * rest + quotient % 2 > divisor), 0)
    * toDecimal256('1e-18', 18)) AS half_even,
((dividend, divisor) -> half_even(intDiv(dividend, divisor), dividend % divisor, divisor)) AS divided,
-- A fraction with 18 decimals: null without a whole, and for numbers of more than 58 digits.
((part, whole) -> divided(toInt256(if(greatest(toFloat64(part), toFloat64(whole)) < 1e58, part, NULL))
    * toInt256(1000000000000000000), toInt256(nullIf(whole, 0)))) AS ratio,
-- The units of an asset that a receipt token redeems: 1 while there are no receipt tokens.
((principal, supply) -> if(supply = 0, toDecimal256(1, 18), ratio(principal, supply))) AS redeemed_by_each
