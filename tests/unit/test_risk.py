"""Risk of borrow accounts: random protocols against an independent calculation, and round numbers by hand."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics_service.errors import EntityNotFound, ParameterInvalid
from analytics_service.market.account_health import INFINITE
from analytics_service.market.assets import Asset, AssetGroup, AssetKind, link_receipts
from analytics_service.market.book import Terms, Valuation, book_of
from analytics_service.market.borrowers import LiquidationPrice, Order, borrowers_of
from analytics_service.market.ladder import ladder_of
from analytics_service.market.markets import CollateralConfig, CollateralMarket, LendMarket, Market
from analytics_service.market.portfolio import Portfolio
from analytics_service.market.positions import Account, Holding, Position, Stake
from analytics_service.market.risk import (
    AccountTotals,
    BadDebt,
    Exposure,
    PriceChange,
    assume_prices,
    assumed_prices,
    change_prices,
    near_risk,
    risk_of,
)
from analytics_service.store.datasets.positions import borrowing_of
from tests.stored import item_frame
from tests.unit.risk_oracle import Judged, decimal, judge, prices_of, round18
from tests.unit.small_protocol import CONFIG, CONTEXT, HEL_MARKET, ORB_MARKET, POSITION, PTOKEN, Context

D, F = Decimal, Fraction
NAMES = ("eth", "reth", "rreth", "steth", "usd", "ptk", "dark")
ETH, RETH, RRETH, STETH, USD, PTK, DARK = (f"native;{name}" for name in NAMES)


def asset(asset_id: str, decimals: int, **fields: Any) -> Asset:
    key = asset_id.partition(";")[2]
    return Asset(AssetGroup.NATIVE, key, key, key.upper(), key, decimals, 2, **fields)


# Receipts of ETH have no price of their own, nor have receipts of these. Staked ETH has one, and DARK has none.
ASSETS = {
    known.id: known
    for known in (
        asset(ETH, 18, receipt_asset=RETH),
        asset(RETH, 8, kind=AssetKind.RECEIPT, origin_asset=ETH),
        asset(RRETH, 20, kind=AssetKind.RECEIPT, origin_asset=RETH),
        asset(STETH, 6, kind=AssetKind.LIQUID_STAKING, origin_asset=ETH),
        asset(USD, 6),
        asset(PTK, 6),
        asset(DARK, 6),
    )
}
RECEIPTS = {ETH: RETH, RETH: RRETH}
QUOTED = {ETH: D(2000), STETH: D(2100), USD: D(1), PTK: D("0.5")}
AMOUNTS = st.integers(0, 40).map(lambda units: units * 25)
HELD = st.lists(st.sampled_from([*ASSETS]), max_size=3, unique=True)
OWN_LTVS = st.sampled_from([None, None, D(0), D("0.93")])
THREE = st.integers(0, 2)
ADDRESSES = ["0x" + digit * 40 for digit in "123456"]


def valued(positions: Sequence[Position], context: Context, quoted: Mapping[str, Decimal | None] = QUOTED) -> Valuation:
    return Valuation(book_of([borrowing_of(item_frame(positions))], context.markets), terms_of(context), quoted)


def terms_of(context: Context) -> Terms:
    return Terms(link_receipts(context.assets), context.markets, context.config, context.ptoken)


@st.composite
def protocols(draw: st.DrawFn) -> tuple[list[Position], Context]:
    """Few distinct numbers, so that healths are often equal to a bound, and to each other."""

    def market(asset_id: str) -> Market:
        ltv = draw(st.sampled_from(["0", "0.5", "0.8", "0.95"]))
        unit, token_unit = (10 ** ASSETS[of].decimals_denom for of in (asset_id, RECEIPTS.get(asset_id, asset_id)))
        shares, balance = draw(st.sampled_from([(0, 0), (10**30, 10**30), (7 * 10**21, 10**22 + 1), (3, 7)]))
        return Market(
            asset_id,
            LendMarket(D(0), 3 * unit, draw(st.sampled_from([0, 2, 7])) * token_unit),
            CollateralMarket(CollateralConfig(True, D(0), D(ltv), None, D(0), D(0)), balance, shares),
            replace(HEL_MARKET.debt, balance=balance + 1, shares=shares) if HEL_MARKET.debt else None,
        )

    def holding(asset_id: str) -> Holding:
        usd = F(prices[asset_id]) if asset_id in prices else F(1)
        unit = 10 ** ASSETS[asset_id].decimals_denom
        return Holding(asset_id, int(draw(AMOUNTS) * unit / usd), liquidation_ltv=draw(OWN_LTVS))

    def holdings() -> tuple[Holding, ...]:
        return tuple(map(holding, draw(HELD)))

    def stakes() -> tuple[Stake, ...]:
        return tuple(
            Stake(draw(THREE), draw(THREE), draw(AMOUNTS) * 10**5, False, None, D(0)) for _ in range(draw(THREE))
        )

    config = replace(
        CONFIG,
        stake_collateral_ratio=draw(st.sampled_from([D(0), D("0.25"), D(1)])),
        staking_health_modifier=draw(st.sampled_from([D(0), D("0.2"), D(1)])),
    )
    markets = {asset_id: market(asset_id) for asset_id in draw(st.permutations([*ASSETS]))[: draw(st.integers(4, 7))]}
    context = Context(link_receipts(ASSETS), QUOTED, markets, config, replace(PTOKEN, asset_id=PTK))
    prices = prices_of(context, QUOTED)
    positions = [
        Position(
            address,
            accounts=tuple(Account(index, holdings(), holdings()) for index in range(draw(THREE))),
            stakes=stakes(),
        )
        for address in draw(st.permutations(ADDRESSES))
    ]
    return positions, context


CHANGES = st.lists(st.sampled_from(["-100", "-50", "-20", "0", "0.1", "25"]).map(D), min_size=1, max_size=4).map(sorted)
# Prices that were lost; RETH had one of its own, and then follows ETH again.
LOST = st.lists(st.sampled_from([ETH, RETH, STETH, USD, PTK]), max_size=2).map(dict.fromkeys)
SHIFTS = st.dictionaries(
    st.sampled_from([ETH, RETH, USD, PTK]), st.sampled_from(["0.8", "0.3", "0", "1.25"]), max_size=2
)


def shifted(context: Context, shifts: Mapping[str, str]) -> dict[str, Decimal]:
    prices = prices_of(context, QUOTED)
    return QUOTED | {name: decimal(round18(prices[name] * F(by))) for name, by in shifts.items() if name in prices}


def slice_of(accounts: Sequence[Judged]) -> AccountTotals:
    collateral = sum((account.collateral for account in accounts), F(0))
    debt = sum((account.debt for account in accounts), F(0))
    return AccountTotals(len(accounts), decimal(round18(collateral)), decimal(round18(debt)))


def missing(accounts: Sequence[Judged]) -> BadDebt:
    bad = [account.debt - account.collateral for account in accounts if account.debt > account.collateral]
    return BadDebt(len(bad), decimal(round18(sum(bad, F(0)))))


@given(protocols(), st.sampled_from(["1", "1.1", "3"]).map(D), LOST)
def test_accounts_near_risk_are_all_that_is_at_risk(
    protocol: tuple[list[Position], Context], bound: Decimal, lost: dict[str, None]
) -> None:
    positions, context = protocol
    items, quoted = borrowing_of(item_frame(positions)), {**QUOTED, **lost}
    near = near_risk(items, terms_of(context), quoted, max(bound, D("1.1")))
    valuations = [Valuation(book_of([rows], context.markets), terms_of(context), quoted) for rows in (near, items)]
    some, every = (risk_of(valuation, bound) for valuation in valuations)
    assert (some.at_risk, some.liquidatable) == (every.at_risk, every.liquidatable)
    hides = any(account.is_hidden for account in judge(positions, context, quoted))
    assert [valuation.hides_debtors for valuation in valuations] == [hides] * 2


@given(protocols(), SHIFTS, LOST, st.sampled_from(["1", "1.1", "1.17", "10"]))
def test_risk_is_that_of_all_accounts_one_by_one(
    protocol: tuple[list[Position], Context], shifts: Mapping[str, str], lost: dict[str, None], threshold: str
) -> None:
    positions, context = protocol
    quoted = {**shifted(context, shifts), **lost}
    accounts = judge(positions, context, quoted)
    owing = [account for account in accounts if account.counts]
    risk = risk_of(valued(positions, context, quoted), D(threshold))

    def below(bound: str) -> list[Judged]:
        return [account for account in owing if account.health is not None and account.health < F(bound)]

    def by_asset(side: str) -> dict[str, tuple[Decimal, ...]]:
        def value(asset_id: str, some: Sequence[Judged]) -> Decimal:
            values = (getattr(account, side).get(asset_id, F(0)) for account in some)
            return decimal(round18(sum(values, F(0))))

        sets = (owing, below(threshold), below("1"))
        return {asset_id: tuple(value(asset_id, some) for some in sets) for asset_id in ASSETS}

    assert risk.unpriced_debt_accounts == sum(account.unpriced for account in accounts)
    assert risk.unpriced_collateral_accounts == sum(account.unpriced_collateral for account in accounts)
    assert risk.accounts == sum(not account.is_unknown for account in accounts)
    assert (risk.indebted, risk.at_risk, risk.liquidatable) == tuple(
        map(slice_of, (owing, below(threshold), below("1")))
    )
    assert risk.bad_debt == missing(owing)
    bounds = ["0", "0.5", "0.8", "0.9", "0.95", "1", "1.05", "1.1", "1.25", "1.5", "2", "3", "5", "10", "1e99"]
    ranges = [[account for account in below(end) if account not in below(begin)] for begin, end in pairwise(bounds)]
    assert [part.accounts for part in risk.histogram] == list(map(slice_of, ranges))
    for listed, side in ((risk.by_collateral, "collaterals"), (risk.by_debt, "debts")):
        values = {part.asset_id: (part.value, part.at_risk, part.liquidatable) for part in listed}
        nothing = (D(0), D(0), D(0))
        assert {asset_id: values.get(asset_id, nothing) for asset_id in ASSETS} == by_asset(side)


@given(protocols(), st.sampled_from([ETH, RETH, USD, PTK]), st.sampled_from([(), (STETH,)]), CHANGES, LOST)
def test_each_step_of_a_ladder_is_the_risk_at_its_price(
    protocol: tuple[list[Position], Context],
    asset_id: str,
    following: tuple[str, ...],
    changes: list[Decimal],
    lost: dict[str, None],
) -> None:
    positions, context = protocol
    quoted = {**QUOTED, **lost}
    valuation = valued(positions, context, quoted)
    if not {asset_id, *following} <= valuation.known.keys():
        return
    asset_id, *following_ids = map(valuation.underlying, (asset_id, *following))
    ladder = ladder_of(valuation, asset_id, changes, following_ids)
    for change, step in zip(changes, ladder.steps, strict=True):
        changed = {
            name: decimal(round18(F(valuation.known[name]) * (100 + F(change)) / 100))
            for name in (asset_id, *following_ids)
        }
        price = changed[asset_id]
        owing = [account for account in judge(positions, context, quoted | changed) if account.counts]
        liquidatable = [account for account in owing if account.health is not None and account.health < 1]
        assert (step.change, step.price) == (change / 100, price)
        assert (step.liquidatable, step.bad_debt) == (slice_of(liquidatable), missing(owing).value)


@given(protocols(), st.sampled_from(["debt", "health", "collateral"]), st.integers(1, 5), LOST)
def test_borrowers_are_paged_in_an_exact_order(
    protocol: tuple[list[Position], Context], order: Order, limit: int, lost: dict[str, None]
) -> None:
    """Those of unknown health come last."""
    positions, context = protocol
    quoted = {**QUOTED, **lost}
    accounts = judge(positions, context, quoted)
    owing = [account for account in accounts if account.counts]
    unknown = [account for account in accounts if account.is_unknown and (account.unpriced or account.debt)]
    keys: dict[str, Callable[[Judged], Fraction | None]] = {
        "debt": lambda account: -account.debt,
        "collateral": lambda account: -account.collateral,
        "health": lambda account: account.health,
    }
    expected = [
        (account.address, account.index, decimal(round18(account.debt)), decimal(account.health or F(0)))
        for account in sorted(owing, key=keys[order])  # type: ignore[arg-type]
    ]
    valuation = valued(positions, context, quoted)
    pages = [borrowers_of(valuation, order, limit, offset) for offset in range(0, 15, limit)]
    assert {page.count for page in pages} == {len(owing) + len(unknown)}
    listed = [borrower for page in pages for borrower in page.listed]
    known = listed[: len(owing)]
    assert [(one.address, one.account_index, one.debt_value, one.health) for one in known] == expected
    assert [(one.address, one.account_index, one.debt_value is None, one.health) for one in listed[len(owing) :]] == [
        (account.address, account.index, account.unpriced, None) for account in unknown
    ]


@given(protocols())
def test_health_reaches_1_at_the_price_of_liquidation_and_nowhere_nearer(
    protocol: tuple[list[Position], Context],
) -> None:
    """Health on a grid of prices, by the independent calculation, changes its side of 1 only where a price says so."""
    positions, context = protocol
    valuation = valued(positions, context)
    assert {valuation.underlying(asset_id) for asset_id in (RETH, RRETH)} == {ETH}
    names = {(account.address, account.index): place for place, account in enumerate(judge(positions, context, QUOTED))}

    def health(place: int, asset_id: str, price: Decimal) -> Fraction | None:
        return judge(positions, context, QUOTED | {asset_id: price})[place].health

    for borrower in borrowers_of(valuation, "debt", 3, 0).listed:
        place = names[borrower.address, borrower.account_index]
        for found in borrower.liquidation:
            assert found.asset_id not in (RETH, RRETH)
            present = valuation.prices.get(found.asset_id)
            if not present or borrower.health is None:
                assert found == LiquidationPrice(found.asset_id)
                continue
            grid = [change_prices(present, D(percent)) for percent in (-99, -80, -50, -20, -1, 1, 20, 50, 100, 400)]
            if found.price is not None:
                reached = health(place, found.asset_id, found.price)
                assert reached is None or abs(reached - 1) < F(1, 10**12) or found.price < D("1e-6")
                distance = abs(found.price - present)
                grid = [price for price in grid if abs(price - present) < distance * D("0.999")]
            sides = {
                value < 1
                for value in (health(place, found.asset_id, price) for price in (present, *grid))
                if value is not None and abs(value - 1) > F(1, 10**12)
            }
            assert len(sides) <= 1, (found, borrower)


@given(protocols(), LOST)
def test_health_is_that_of_the_path_of_the_account(
    protocol: tuple[list[Position], Context], lost: dict[str, None]
) -> None:
    """That of accounts which are in no figure is unknown there."""
    positions, context = protocol
    quoted = {**QUOTED, **lost}
    valuation = valued(positions, context, quoted)
    priced = replace(context, prices=valuation.prices)
    shown = {
        (position.address, account.index): account.health.result
        for position in positions
        for account in Portfolio(position, priced).accounts
    }
    listed = borrowers_of(valuation, "debt", 1000, 0).listed
    assert {(one.address, one.account_index): one.health for one in listed}.items() <= shown.items()
    unknown = {(one.address, one.index) for one in judge(positions, context, quoted) if one.is_unknown}
    assert {name for name, health in shown.items() if health is None} == unknown
    unlisted = shown.keys() - unknown - {(one.address, one.account_index) for one in listed}
    assert {shown[name] for name in unlisted} <= {INFINITE}


def account(orb: int, usdt: int, index: int = 0, **position: Any) -> Position:
    """An account with whole ORB of collateral, at 8 USD and 75 %, that owes whole USDT."""
    # 400 million shares are 500 ORB; 800 million are 880 USDT.
    held, owed = Holding("native;uorb", orb * 800_000), Holding("native;uusdt", usdt * 10_000_000 // 11)
    return Position(POSITION.address, accounts=(Account(index, (held,), (owed,)),), **position)


def by_hand(*positions: Position, **changes: Any) -> Valuation:
    prices = {**CONTEXT.prices, "native;uusdt": D("1.00")}
    return valued(positions, replace(CONTEXT, **changes), prices)


def test_an_account_of_health_1_cannot_be_liquidated() -> None:
    """11 ORB secure 66 USD of a debt of 66; at the next lower price, which no float can tell from 8, they do not."""
    risk = risk_of(by_hand(account(11, 66)))
    assert (risk.liquidatable.accounts, risk.at_risk) == (0, AccountTotals(1, D(88), D(66)))
    assert [part.begin for part in risk.histogram if part.accounts.accounts] == [1]
    below = by_hand(account(11, 66))
    risk = risk_of(replace(below, quoted=below.quoted | {"native;uorb": D("7.999999999999999992")}))
    assert risk.liquidatable == AccountTotals(1, D("87.999999999999999912"), D(66))
    assert [part.begin for part in risk.histogram if part.accounts.accounts] == [D("0.95")]


def test_rounding_of_floats_liquidates_nobody() -> None:
    """0.3 USD of collateral secure debts of 0.1 and 0.2 USD, which as floats are more than 0.3."""
    markets = {
        asset_id: Market(asset_id, None, CollateralMarket(CollateralConfig(True, D(0), D(1), None, D(0), D(0)), 1, 1),
                         replace(HEL_MARKET.debt, balance=1, shares=1) if HEL_MARKET.debt else None)
        for asset_id in (ETH, USD, PTK)
    }  # fmt: skip
    context = Context(ASSETS, {}, markets, CONFIG, replace(PTOKEN, asset_id=PTK))
    position = Position("0x" + "1" * 40, (Account(0, (Holding(ETH, 1),), (Holding(USD, 1), Holding(PTK, 1))),))
    quoted = {ETH: D("0.3").scaleb(18), USD: D("0.1").scaleb(6), PTK: D("0.2").scaleb(6)}
    valuation = valued([position], context, quoted)
    assert valuation.sums.select(pl.col("collateral") < pl.col("debt")).item()
    risk = risk_of(valuation)
    assert (risk.liquidatable.accounts, risk.bad_debt.accounts, risk.at_risk.accounts) == (0, 0, 1)


def test_an_empty_protocol_has_no_risk() -> None:
    valuation = by_hand()
    nothing = AccountTotals(0, D(0), D(0))
    risk = risk_of(valuation)
    assert (risk.accounts, risk.indebted, risk.at_risk, risk.liquidatable) == (0, nothing, nothing, nothing)
    assert (risk.bad_debt, list(risk.by_debt), len(risk.histogram)) == (BadDebt(0, D(0)), [], 14)
    assert [step.liquidatable for step in ladder_of(valuation, "native;uorb", [D(-5), D(5)]).steps] == [nothing] * 2
    assert borrowers_of(valuation, "debt", 20, 0).count == 0


def test_amounts_beyond_64_bits_stay_exact() -> None:
    """Values are sums of whole amounts: 10^60 and 1 denom units at 18 decimals."""
    whole = replace(ORB_MARKET, asset_id="native;ahel", collateral=CollateralMarket(
        CollateralConfig(True, D(0), D(1), None, D(0), D(0)), 2**255, 2**255))  # fmt: skip
    markets = CONTEXT.markets | {"native;ahel": replace(HEL_MARKET, collateral=whole.collateral)}
    positions = [
        Position(
            f"0x{shares % 7:040x}", (Account(0, (Holding("native;ahel", shares),), (Holding("native;uusdt", 11),)),)
        )
        for shares in (10**60, 1)
    ]
    risk = risk_of(by_hand(*positions, markets=markets))
    assert risk.indebted.collateral_value == D("2000000000000000000000000000000000000000000000.000000000000002")


def lending(quoted: Mapping[str, Decimal], assets: Mapping[str, Asset] = ASSETS) -> Valuation:
    """Nobody borrows. 100 ETH are lent for 200 receipts, and 10 of these for 5 receipts of receipts."""
    lends = {ETH: LendMarket(D(0), 100 * 10**18, 200 * 10**8), RETH: LendMarket(D(0), 10 * 10**8, 5 * 10**20)}
    markets = {asset_id: Market(asset_id, lend, None, None) for asset_id, lend in lends.items()}
    return valued([], Context(assets, {}, markets, CONFIG, PTOKEN), quoted)


def parsed(*changes: str) -> list[PriceChange]:
    return [
        PriceChange(name, D(change.rstrip("%")), change.endswith("%"))
        for name, _, change in (text.rpartition(":") for text in changes)
    ]


def test_changes_are_of_the_price_and_name_assets_by_symbol_or_id() -> None:
    changes = parsed("eth:-20%", f"{STETH}:60000.5")
    assert assume_prices(changes, lending({ETH: D(2000), STETH: D(3000)})) == {ETH: D(1600), STETH: D("60000.5")}
    prices = {ETH: D(2000), RETH: D(3000), PTK: D("0.5")}
    shown = assumed_prices([ETH], prices, prices | {ETH: D(1600), RETH: D(2400)})
    # Receipts follow their origin.
    assert [(one.asset_id, one.price, one.assumed_price) for one in shown] == [
        (ETH, D(2000), D(1600)),
        (RETH, D(3000), D(2400)),
    ]


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        (["BTC:-1%"], EntityNotFound, "prices: 'BTC' is the symbol of no asset"),
        (["native;btc:-1%"], EntityNotFound, "prices: 'native;btc' names no asset"),
        (["ETH:-1%", "native;eth:5"], ParameterInvalid, "names an asset whose price is already given"),
        (["DARK:-1%"], ParameterInvalid, "'DARK' has no price to change; give one in USD"),
        (["ETH:99999999999999999999%"], ParameterInvalid, "must be below 10\\^20"),
        (["ETH:-1%", "RRETH:5"], ParameterInvalid, "'RRETH' names an asset whose price is already given"),
    ],
)
def test_a_change_that_cannot_be_assumed_is_named(changes: list[str], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        assume_prices(parsed(*changes), lending({ETH: D(2000)}))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("RRETH:-20%", {ETH: D(1600)}),
        # One redeems 2 RETH, which redeem 1 ETH.
        ("RRETH:1500", {ETH: D(1500)}),
        ("RETH:900", {ETH: D(1800)}),
        # No ratio says what staked ETH without a price redeems.
        ("STETH:-20%", {ETH: D(1600)}),
        ("STETH:2100", {STETH: D(2100)}),
    ],
)
def test_a_token_without_a_price_of_its_own_stands_for_its_origin(change: str, expected: Mapping[str, Decimal]) -> None:
    assert assume_prices(parsed(change), lending({ETH: D(2000)})) == expected


def test_an_asset_and_its_receipts_fall_together() -> None:
    """1 ETH at 2,000 USD, 2 RETH and 1 RRETH, which redeem 1 ETH each, secure 80 % of 6,000 for a debt of 2,400 USD.
    A ladder of any of them is that of ETH, and by the price of ETH there are 6,000 USD of collateral."""
    valuation = lending({ETH: D(2000), USD: D(1)})
    rules = CollateralConfig(True, D(0), D("0.8"), None, D(0), D(0))
    held = {ETH: 10**18, RETH: 2 * 10**8, RRETH: 10**20}
    markets = {
        asset_id: replace(
            valuation.terms.markets.get(asset_id, Market(asset_id, None, None, None)),
            collateral=CollateralMarket(rules, 10**30, 10**30),
        )
        for asset_id in held
    }
    owed = Market(USD, None, None, replace(HEL_MARKET.debt, balance=10**30, shares=10**30) if HEL_MARKET.debt else None)
    account = Account(0, tuple(Holding(*pair) for pair in held.items()), (Holding(USD, 2_400 * 10**6),))
    context = Context(ASSETS, {}, {**markets, USD: owed}, CONFIG, PTOKEN)
    valuation = valued([Position("0x" + "1" * 40, (account,))], context, valuation.quoted)
    (borrower,) = borrowers_of(valuation, "debt", 1, 0).listed
    assert borrower.liquidation == [LiquidationPrice(ETH, D(1000), D("-0.5")), LiquidationPrice(USD, D(2), D(1))]
    exposures = risk_of(valuation).by_price
    assert exposures == [Exposure(ETH, D(6000), D(0)), Exposure(USD, D(0), D(2400))]
    steps = ladder_of(valuation, ETH, [D(-51), D(-50)]).steps
    assert [step.liquidatable for step in steps] == [AccountTotals(1, D(2940), D(2400)), AccountTotals(0, D(0), D(0))]
    # Half of a price of 1E-18 is no price of 18 decimals: then health is unknown.
    steps = ladder_of(replace(valuation, quoted={ETH: D("2E-18"), USD: D(1)}), ETH, [D(-50), D(0)]).steps
    assert [step.liquidatable for step in steps] == [
        AccountTotals(0, D(0), D(0)),
        AccountTotals(1, D("6E-18"), D(2400)),
    ]
