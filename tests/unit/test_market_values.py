"""USD values, fractions, receipt tokens, supply sums and rates."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics_service.errors import OutOfRange
from analytics_service.market import kinds
from analytics_service.market.assets import Asset, AssetGroup, AssetKind, link_receipts
from analytics_service.market.decimals import as_fraction, usd_value
from analytics_service.market.kinds import Number, Rate
from analytics_service.market.markets import (
    CollateralConfig,
    CollateralMarket,
    DebtConfig,
    DebtMarket,
    LendMarket,
    Market,
)
from analytics_service.market.prices import Price, known_prices, price_change, usd_by_asset
from analytics_service.market.rates import apy, net_rate
from analytics_service.market.receipts import origin_equivalent, redemption_ratio, with_receipt_prices
from analytics_service.market.supply import SupplyPool, Tvl, market_supply, utilization
from analytics_service.store.datasets.observations import price_frame
from tests.unit.small_protocol import rate

D = Decimal
RATIO = D("0.5")
COLLATERAL = CollateralConfig(True, RATIO, RATIO, None, RATIO, RATIO)
DEBT = DebtConfig(True, None, RATIO, RATIO)

amounts = st.integers(0, 2**256 - 1)
prices = st.decimals(0, 10**20 - 1, places=18)


def lend(principal: int, receipts: int) -> LendMarket:
    return LendMarket(D(0), principal, receipts)


def asset(key: str, decimals: int, kind: AssetKind = AssetKind.REGULAR, receipt: str | None = None) -> Asset:
    return Asset(AssetGroup.NATIVE, key, key, key, key, decimals, 2, kind, receipt_asset=receipt)


@given(amounts, st.integers(0, 77), prices)
def test_values_are_exact_to_18_decimals_for_amounts_of_256_bits(amount: int, decimals: int, price: Decimal) -> None:
    """Python's rationals round half to even as well."""
    exact = Fraction(amount) * Fraction(price) / 10**decimals
    assert Fraction(usd_value(amount, decimals, price)) == Fraction(round(exact * 10**18), 10**18)


@given(amounts, amounts)
def test_fractions_are_rounded_half_to_even_to_18_decimals_and_are_0_of_0(part: int, whole: int) -> None:
    expected = Fraction(round(Fraction(part, whole) * 10**18), 10**18) if whole else 0
    assert Fraction(as_fraction(part, whole)) == expected


def test_a_receipt_token_redeems_its_part_of_the_principal_rounded_down() -> None:
    """7 receipts share a principal of 10: one redeems 1.428571 of it, and 5 redeem 7.14."""
    market, lent, token = lend(10, 7), asset("a", 6), asset("ra", 6)
    assert redemption_ratio(market, lent, token) == D("1.428571428571428571")
    assert origin_equivalent(5, market, lent, token) == 7
    assert origin_equivalent(7, market, lent, token) == 10


@pytest.mark.parametrize(
    ("decimals", "token_decimals", "market", "ratio"),
    [
        # 1,000,000 receipts redeem 22,555.44.
        (6, 8, lend(22_555_440_000, 10**14), "0.02255544"),
        (18, 8, lend(1_100 * 10**18, 50_000 * 10**8), "0.022"),
        (0, 36, lend(3, 2 * 10**36), "1.5"),
        (36, 0, lend(3 * 10**36, 2), "1.5"),
        (6, 18, lend(0, 0), "1"),
    ],
)
def test_a_redemption_ratio_is_in_standard_units(
    decimals: int, token_decimals: int, market: LendMarket, ratio: str
) -> None:
    assert redemption_ratio(market, asset("a", decimals), asset("ra", token_decimals)) == D(ratio)


def test_the_price_of_a_receipt_token_without_an_oracle_price_is_that_of_its_origin_times_the_ratio() -> None:
    assets = {
        definition.id: definition
        for definition in (asset("a", 6, receipt="native;ra"), asset("b", 6, receipt="native;rb"))
    }
    markets = [
        Market("native;a", lend(110, 100), None, None),
        Market("native;b", lend(2, 1), None, None),
        Market("native;c", lend(2, 1), None, None),
    ]
    quoted = {"native;a": D("2.5"), "native;b": D(3), "native;rb": D(5)}
    assert with_receipt_prices(quoted, assets, markets) == {**quoted, "native;ra": D("2.75")}
    assert with_receipt_prices({}, assets, markets) == {}


def test_a_receipt_token_of_a_receipt_token_costs_what_it_redeems_in_the_end() -> None:
    """One rra redeems 4 ra of 2 a each, one rrra half an rra. A price in between counts from there on."""
    keys = ("a", "ra", "rra", "rrra")
    defined = [asset(key, 6, receipt=f"native;r{key}") for key in keys]
    assets = {definition.id: definition for definition in defined}
    markets = [Market("native;rra", lend(1, 2), None, None), *(
        Market(f"native;{key}", lend(ratio, 1), None, None) for key, ratio in (("ra", 4), ("a", 2))
    )]  # fmt: skip
    expected = {"native;a": D("1.5"), "native;ra": D(3), "native;rra": D(12), "native;rrra": D(6)}
    assert with_receipt_prices({"native;a": D("1.5")}, assets, markets) == expected
    quoted = {"native;a": D(9), "native;rra": D(12)}
    assert with_receipt_prices(quoted, assets, markets) == {**expected, "native;a": D(9), "native;ra": D(18)}
    assert set(with_receipt_prices({"native;a": None}, assets, markets).values()) == {None}


@pytest.mark.parametrize(("lent", "out"), [(10**18 + 1, 1), (1, 10**30)])
def test_a_receipt_token_whose_price_cannot_be_stored_has_an_unknown_one(lent: int, out: int) -> None:
    """At 2,000 USD for 10^18 denom units: 2 * 10^39 USD and 2 * 10^-27 USD for as many receipts."""
    assets = {"native;e": asset("e", 18, receipt="native;re"), "native;re": asset("re", 18)}
    markets = [Market("native;e", lend(lent, out), None, None)]
    quoted = {"native;e": D(2000)}
    assert with_receipt_prices(quoted, assets, markets) == {**quoted, "native;re": None}


def standing(key: str, origin: str, kind: AssetKind = AssetKind.RECEIPT) -> Asset:
    return replace(asset(key, 6, kind), origin_asset=origin)


def test_an_asset_and_its_receipt_token_are_linked_by_either() -> None:
    """Only a's receipt names a. b names its receipt itself, and another one names b. c has two, and is also staked."""
    listed = [
        asset("a", 6),
        standing("ra", "native;a"),
        asset("b", 6, receipt="native;rb"),
        asset("rb", 6, AssetKind.RECEIPT),
        standing("other", "native;b"),
        asset("c", 6),
        standing("rc2", "native;c"),
        standing("rc1", "native;c"),
        standing("ac", "native;c", AssetKind.LIQUID_STAKING),
    ]
    assets = link_receipts({definition.id: definition for definition in listed})
    assert list(assets) == [definition.id for definition in listed]
    links = {"native;a": "native;ra", "native;b": "native;rb", "native;c": "native;rc1"}
    assert list(assets.values()) == [
        replace(definition, receipt_asset=links.get(definition.id)) for definition in listed
    ]


def debt(balance: int, shares: int) -> DebtMarket:
    return DebtMarket(DEBT, D(0), balance, shares, datetime(2025, 1, 1, tzinfo=UTC), D(0))


def test_supply_sums_markets_and_separates_receipt_tokens() -> None:
    """a at 2 USD: 7 lent, 3 posted with 4 shares, 1 owed with 3. Its receipt at 2.5 USD: 2 posted, 1 lent again.

    b has no price.
    """
    assets = {
        definition.id: definition
        for definition in (asset("a", 0, receipt="native;ra"), asset("ra", 0, AssetKind.RECEIPT), asset("b", 0))
    }
    markets = [
        Market("native;a", lend(7, 7), CollateralMarket(COLLATERAL, 3, 4), debt(1, 3)),
        Market("native;ra", lend(1, 1), CollateralMarket(COLLATERAL, 2, 2), None),
        Market("native;b", lend(9, 9), CollateralMarket(COLLATERAL, 9, 9), debt(9, 9)),
        Market("native;unknown", lend(9, 9), None, None),
    ]
    supply = market_supply(markets, assets, {"native;a": D(2), "native;ra": D("2.5"), "native;unknown": D(1)})
    assert supply.borrow_collateral.non_receipt == SupplyPool(D(6), D(8))
    assert supply.borrow_collateral.receipt == SupplyPool(D(5), D(5))
    assert supply.borrow_collateral.total == SupplyPool(D(11), D(13))
    assert supply.borrow_debt == SupplyPool(D(2), D(6))
    assert supply.lend.principal == D(14)
    assert supply.tvl == Tvl(D(20), D(18))


def test_sums_with_a_price_that_is_not_known_any_more_are_unknown() -> None:
    """An amount of 0 is worth 0; other sums stay. The receipts of b follow it."""
    lent = replace(asset("b", 0), receipt_asset="native;rb")
    defined = (asset("a", 0), lent, asset("c", 0), asset("rb", 0, AssetKind.RECEIPT))
    assets = {definition.id: definition for definition in defined}
    markets = [
        Market("native;a", lend(7, 7), CollateralMarket(COLLATERAL, 3, 3), debt(1, 1)),
        Market("native;b", lend(0, 0), None, debt(2, 0)),
        Market("native;rb", None, CollateralMarket(COLLATERAL, 1, 1), None),
        Market("native;c", lend(9, 9), None, None),
    ]
    prices = with_receipt_prices({"native;a": D(2), "native;b": None}, assets, markets)
    assert prices == {"native;a": D(2), "native;b": None, "native;rb": None}
    assert with_receipt_prices({"native;b": D(4), "native;rb": None}, assets, markets)["native;rb"] == D(4)
    supply = market_supply(markets, assets, prices)
    assert (supply.lend.principal, supply.borrow_debt) == (D(14), SupplyPool(None, D(2)))
    assert supply.borrow_collateral.non_receipt == SupplyPool(D(6), D(6))
    assert supply.borrow_collateral.receipt == supply.borrow_collateral.total == SupplyPool(None, None)
    assert supply.tvl == Tvl(D(20), None)


def test_a_price_is_known_up_to_its_age() -> None:
    at, day = datetime(2026, 1, 2, tzinfo=UTC), timedelta(days=1)
    last = [Price("native;a", at - day, D(1)), Price("native;b", at - day - timedelta(seconds=1), D(1))]
    assert known_prices(last, at, day) == {"native;a": D(1), "native;b": None}


@pytest.mark.parametrize(
    ("deposits", "owed", "expected"),
    [
        (lend(3, 1), debt(1, 1), D("0.333333333333333333")),
        (lend(2, 1), None, D(0)),
        (lend(0, 0), debt(5, 1), None),
        (None, debt(5, 1), None),
    ],
)
def test_utilization_is_debt_by_deposits_and_none_without_deposits(
    deposits: LendMarket | None, owed: DebtMarket | None, expected: Decimal | None
) -> None:
    assert utilization(Market("native;a", deposits, None, owed)) == expected


def test_the_last_of_several_prices_of_an_asset_counts() -> None:
    """Whatever their order; it is rounded as it is stored."""
    first, later = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)
    seen = [Price("native;a", later, D("0.0000000000000000015")), Price("native;a", first, D(9))]
    assert usd_by_asset([*seen, Price("native;b", first, D(1))]) == {
        "native;a": D("0.000000000000000002"),
        "native;b": D(1),
    }


@pytest.mark.parametrize("apr", ["-1", "-0.005", "0", "0.000000000000000001", "0.0432", "100"])
def test_the_apy_compounds_the_apr_every_second_of_a_365_day_year(apr: str) -> None:
    """The expected value is e to the power of n * ln(1 + apr/n), with 200 digits."""
    with localcontext(prec=200):
        grown = (31_536_000 * (1 + D(apr) / 31_536_000).ln()).exp() - 1
        expected = grown.quantize(D("1e-18"))
    assert apy(D(apr)) == expected


def test_the_apr_of_a_net_rate_is_the_mean_of_aprs_and_its_apy_that_of_apys() -> None:
    """300 USD at 2 % and 100 USD at 10 % earn 16 USD per year on 400.

    Compounded that is (3 * apy(0.02) + apy(0.1)) / 4; compounding the mean of 4 % would give less.
    """
    mean = net_rate([(D(300), rate("0.02")), (D(100), rate("0.1"))])
    compounded = (3 * Fraction(apy(D("0.02"))) + Fraction(apy(D("0.1")))) / 4
    assert mean.apr == D("0.04")
    assert Fraction(mean.apy) == Fraction(round(compounded * 10**18), 10**18) > Fraction(apy(D("0.04")))


def test_the_net_rate_of_one_part_is_its_rate_and_without_any_value_it_is_0() -> None:
    assert net_rate([(D("0.7"), rate("0.1"))]) == rate("0.1")
    assert net_rate([]) == net_rate([(D(0), rate("0.1"))]) == rate("0")


# Just below 10^20, and half a unit of the 18th decimal closer, which rounds up to it.
BELOW_LIMIT = "99999999999999999999.999999999999999999"
ROUNDS_TO_LIMIT = "99999999999999999999.9999999999999999995"


@pytest.mark.parametrize(
    ("kind", "number", "kept"),
    [
        (kinds.PriceType, "1572.5", "1572.500000000000000000"),
        (kinds.PriceType, "0.0000000000000000005", "0.000000000000000000"),
        (kinds.PriceType, "0.0000000000000000015", "0.000000000000000002"),
        (kinds.PriceType, "99999999999999999999.9999999999999999994", BELOW_LIMIT),
        (Rate, "0.0432000000000000005", "0.043200000000000000"),
        (Rate, "0.0432000000000000015", "0.043200000000000002"),
        (Number, f"-{BELOW_LIMIT}", f"-{BELOW_LIMIT}"),
    ],
)
def test_numbers_are_rounded_half_to_even_to_18_decimals(kind: type[Number], number: str, kept: str) -> None:
    assert kind.encode(D(number)).as_tuple() == D(kept).as_tuple()


NOT_PRICES = ["1E+20", ROUNDS_TO_LIMIT, "1E+400", "-1E-18", "Infinity", "NaN", "sNaN"]


@pytest.mark.parametrize(
    ("kind", "message", "numbers"),
    [
        (kinds.PriceType, r"is not a price: it must be finite, not negative and below 10\^20", NOT_PRICES),
        (Number, r"must be finite and below 10\^20", ["1E+20", f"-{ROUNDS_TO_LIMIT}", "1E+400", "NaN"]),
        (Rate, "must be a fraction from -1 to 100", ["-1.01", "100.01", "NaN"]),
    ],
)
def test_numbers_that_the_store_cannot_hold_are_refused(kind: type[Number], message: str, numbers: list[str]) -> None:
    for number in numbers:
        with pytest.raises(OutOfRange, match=message):
            kind.encode(D(number))


@pytest.mark.parametrize("usd", NOT_PRICES)
def test_a_price_is_refused_as_such_in_a_batch(usd: str) -> None:
    """Not as a failure of decimal arithmetic or of Polars, which would not be attributed to the price."""
    with pytest.raises(OutOfRange, match="is not a price"):
        price_frame([Price("native;a", datetime(2025, 1, 1, tzinfo=UTC), D(usd))])


def test_the_greatest_price_fits_into_a_batch() -> None:
    (row,) = price_frame([Price("native;a", datetime(2025, 1, 1, tzinfo=UTC), D(BELOW_LIMIT))]).rows()
    assert row == ("price", "native;a", 1735689600, D(BELOW_LIMIT))


def test_a_change_is_a_fraction_of_the_earlier_price_with_six_decimals_half_to_even() -> None:
    ties = (("2000000", "2000001", "0"), ("2000000", "2000003", "0.000002"))
    for before, now, expected in (("8", "2", "-0.75"), ("3", "4", "0.333333"), *ties):
        assert price_change(D(before), D(now)) == D(expected)
    assert price_change(D(0), D(1)) is None
