"""What `source check` says of sources, good and bad."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from analytics_service.cli.sources import _report
from analytics_service.errors import SourceError
from analytics_service.market.assets import Asset, AssetGroup, AssetKind
from analytics_service.market.events import Action, Event
from analytics_service.market.markets import (
    NO_CONFIG,
    CollateralConfig,
    CollateralMarket,
    DebtConfig,
    DebtMarket,
    GlobalConfig,
    LendMarket,
    Market,
)
from analytics_service.market.positions import Account, Balance, Holding, LendPosition, Position, Stake, SwapContract
from analytics_service.market.prices import Price
from analytics_service.market.ptoken import Arrangement, MemberClass, Ptoken, ScheduleKind, StakingPool
from analytics_service.sources.base import Source
from analytics_service.sources.checking.check import Plan, check
from analytics_service.sources.checking.findings import Finding, Level, listed
from analytics_service.sources.simulated.source import SimulatedSource
from tests.unit.test_cli import run

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
ALICE, BOB = "0x" + "a" * 40, "0x" + "b" * 40
ATOM = Asset(AssetGroup.NATIVE, "uatom", "Atom", "ATOM", "uatom", 6, 4)
USDT = Asset(AssetGroup.TOKEN, "0xdac", "Tether", "USDT", "uusdt", 6, 2)
RECEIPT = Asset(AssetGroup.TOKEN, "0xrec", "Receipt", "rUSDT", "urusdt", 6, 2, AssetKind.RECEIPT, origin_asset=USDT.id)
TERMS = CollateralConfig(True, Decimal("0.7"), Decimal("0.8"), None, Decimal(0), Decimal("0.1"))
RULES = DebtConfig(True, None, Decimal("0.95"), Decimal("0.2"))
LEND = LendMarket(Decimal("0.04"), 1_000_000_000, 900_000_000)
DEBT = DebtMarket(RULES, Decimal("0.09"), 500_000_000, 400_000_000, NOW - DAY, Decimal("0.5"))
COLLATERAL = CollateralMarket(TERMS, 250_000_000, 250_000_000)
PTOKEN = Ptoken(ATOM.id, 0, 0, 0, 0, 0, 10**12, NOW - DAY, Decimal(0), (StakingPool(0, 60, *[Decimal(1)] * 4, 0),))
ARRANGEMENT = Arrangement(
    BOB, 0, MemberClass.TEAM, ScheduleKind.LUMP_SUM, 5, 0, NOW - DAY, None, None, None, "", None, 0, 0
)
EVENTS = tuple(
    Event(str(hours), Action.BORROW, USDT.id, ALICE, NOW - hours * HOUR, 10**6, Decimal(1), Decimal(1), 0)
    for hours in (400, 30, 2, 0)
)


@dataclass
class Sound(Source):
    """A source with which nothing is wrong; tests replace parts of its answers."""

    spec: str = "sound"
    may_hang = False
    assets_: Sequence[Any] = (ATOM, USDT, RECEIPT)
    usd: dict[str, Any] = field(default_factory=lambda: {ATOM.id: Decimal("10.5"), USDT.id: Decimal(1)})
    markets_: Sequence[Any] = (Market(ATOM.id, None, COLLATERAL, None), Market(USDT.id, LEND, None, DEBT))
    config_: GlobalConfig = NO_CONFIG
    events_: Sequence[Event] = EVENTS
    ptoken_: Ptoken = PTOKEN
    arrangements_: Sequence[Arrangement] = (ARRANGEMENT, replace(ARRANGEMENT, address="group:team"))
    positions_: Sequence[Position] = (
        Position(ALICE, (Account(0, (Holding(ATOM.id, 250_000_000),), (Holding(USDT.id, 400_000_000),)),)),
        Position(
            BOB, lends=(LendPosition(USDT.id, 900_000_000, 0),), stakes=(Stake(0, 0, 1, False, None, Decimal(0)),)
        ),
    )
    swaps_: Sequence[SwapContract] = (SwapContract(ALICE, {"uatom": ("uusdt",)}),)
    observed: Callable[[datetime], datetime] = lambda at: at

    def assets(self, at: datetime) -> Sequence[Asset]:
        return self.assets_

    def prices(self, at: datetime) -> Sequence[Price]:
        """The prices, which were a dollar higher on each day before."""
        days = (NOW - at).days
        return [Price(asset_id, self.observed(at), usd + days if days else usd) for asset_id, usd in self.usd.items()]

    def markets(self, at: datetime) -> Sequence[Market]:
        return self.markets_

    def config(self, at: datetime) -> GlobalConfig:
        return self.config_

    def events(self, start: datetime, end: datetime) -> Sequence[Event]:
        return [event for event in self.events_ if start <= event.at < end]

    def ptoken(self, at: datetime) -> Ptoken:
        return self.ptoken_

    def arrangements(self, at: datetime) -> Sequence[Arrangement]:
        return self.arrangements_

    def positions(self, at: datetime) -> Iterable[Position]:
        return iter(self.positions_)

    def swaps(self, at: datetime) -> Sequence[SwapContract]:
        return self.swaps_


def findings(source: Source, **plan: Any) -> list[Finding]:
    """What a check finds, each once."""
    return list(dict.fromkeys(step for step in check(source, Plan(NOW, **plan)) if isinstance(step, Finding)))


def said(source: Source, **plan: Any) -> list[str]:
    """The lines about what a check finds."""
    return [f"{finding.level}: {finding.message}" for finding in findings(source, **plan)]


def borrow(**changes: Any) -> Sound:
    """A source with one event."""
    return Sound(events_=(replace(EVENTS[0], **changes),))


def lend(**changes: Any) -> Sound:
    """A source with a single market, in which USDT is lent."""
    return Sound(markets_=(Market(USDT.id, replace(LEND, **changes), None, None),), positions_=())


def test_there_is_nothing_to_say_of_a_sound_source() -> None:
    answers = [step.split() for step in check(Sound(), Plan(NOW)) if isinstance(step, str) and " in " in step]
    assert [(part, int(count)) for part, count, *_ in answers] == [
        ("assets", 3),
        ("prices", 2),
        ("markets", 2),
        ("config", 1),
        ("events", 3),
        ("ptoken", 1),
        ("arrangements", 2),
        ("positions", 2),
        ("swaps", 1),
    ]
    assert said(Sound()) == []


def test_there_is_nothing_to_say_of_the_simulated_source() -> None:
    source = SimulatedSource("1")
    steps = check(source, Plan(datetime(2025, 2, 1, tzinfo=UTC)))
    assert [step for step in steps if isinstance(step, Finding)] == []


def test_what_a_source_lacks_is_not_shown() -> None:
    class Bare(Source):
        spec = "bare"
        has_markets = False

        def assets(self, at: datetime) -> Sequence[Asset]:
            return [ATOM]

        def prices(self, at: datetime) -> Sequence[Price]:
            return [Price(ATOM.id, at, Decimal(1))]

    assert said(Bare()) == [
        "note: markets: there are none, so rates, markets and the total value locked are empty.",
        "note: events: there are none, so loans originated, liquidations and the histories of addresses are empty.",
        "note: arrangements: there are none, so there are no unlocks.",
        "note: positions: there are none, so every address is without accounts, deposits and wallet, and there is no "
        "risk.",
        "note: swaps: there are none, so there are no swap routes.",
    ]


ID = "token;0xDAC"
BAD: dict[str, tuple[Sound, str]] = {
    # What the store cannot hold.
    "a float": (
        Sound(usd={ATOM.id: 10.5}),
        "error: prices: usd of ATOM (native;uatom) is the float 10.5. Floats are not ex",
    ),
    "a float in a record of a record": (
        Sound(markets_=(Market(ATOM.id, None, CollateralMarket(replace(TERMS, max_discount=0.1), 5, 5), None),)),  # type: ignore[arg-type]
        "error: markets: collateral.config.max_discount of ATOM (native;uatom) is the float 0.1",
    ),
    "a time without zone": (
        Sound(observed=lambda at: at.replace(tzinfo=None)),
        "error: prices: observed_at of ATOM (native;uatom) is 2026-03-01 12:00:00, without a time zone. Use UTC.",
    ),
    "a negative price": (Sound(usd={ATOM.id: Decimal(-1)}), "error: prices: usd of ATOM (native;uatom): -1 is"),
    "an id": (
        Sound(usd={"uatom": Decimal(1)}),
        "error: prices: asset_id of uatom: 'uatom' is not the id of an asset: it must b",
    ),
    "no record": (Sound(assets_=({"id": "x"},)), "error: assets: a value is a dict; it must be an Asset."),
    "an amount that is a Decimal": (
        lend(principal=Decimal("1000000.50") * 10**6),
        "error: markets: lend.principal of USDT (token;0xdac) is a Decimal; it must be an int. Amounts are int, in",
    ),
    "milliseconds of a price": (
        Sound(observed=lambda at: 1795780800000),  # type: ignore[arg-type,return-value]
        "error: prices: observed_at of ATOM (native;uatom) is an int; it must be an aware datetime.",
    ),
    "a number of an event": (borrow(id=7), "error: events: id of 7 is an int; it must be a str."),
    "no rules": (Sound(config_=None), "error: config: a value is None; it must be a GlobalConfig."),  # type: ignore[arg-type]
    "a route as text": (
        Sound(swaps_=(SwapContract(ALICE, {"uatom": "uusdt"}),)),  # type: ignore[dict-item]
        f"error: swaps: routes.uatom of {ALICE} is 'uusdt', a str; it must be a tuple.",
    ),
    "a rate above 100": (lend(apr=Decimal(400)), "error: markets: lend.apr of USDT (token;0xdac): 400 is not an APR"),
    # Assets.
    "no assets": (Sound(assets_=()), "error: assets: there are none, so there is no snapshot."),
    "an asset twice": (
        Sound(assets_=(ATOM, USDT, replace(USDT, group_key="0xDAC"))),
        "error: assets: more than once: USDT (token;0xdac). Define each asset once, in one spelling",
    ),
    "a factor": (
        Sound(assets_=(replace(ATOM, decimals_denom=100), USDT)),
        "warning: assets: more than 36 decimals_denom: ATOM",
    ),
    "fine units": (
        Sound(assets_=(replace(ATOM, decimals_denom=27), USDT)),
        "note: assets: unusually many decimals_denom: ATOM (native;uatom, 27).",
    ),
    "a receipt token of other decimals": (
        Sound(assets_=(ATOM, USDT, replace(RECEIPT, decimals_denom=8))),
        "note: assets: receipt tokens with other decimals_denom than their origin: rUSDT (token;0xrec, 8, not 6).",
    ),
    "a receipt token of a receipt token": (
        Sound(assets_=(ATOM, USDT, RECEIPT, replace(RECEIPT, group_key="0xrr", origin_asset=RECEIPT.id))),
        "note: assets: receipt tokens of receipt tokens: rUSDT (token;0xrr).",
    ),
    "receipts of receipts": (
        Sound(assets_=(ATOM, RECEIPT, replace(USDT, kind=AssetKind.RECEIPT, origin_asset=RECEIPT.id))),
        "warning: assets: receipt tokens of each other, which therefore have no price: ",
    ),
    "an origin": (
        Sound(assets_=(ATOM, RECEIPT)),
        "warning: assets: the origin_asset is not among the assets: rUSDT (token;",
    ),
    # Prices.
    "no prices": (Sound(usd={}), "error: prices: there are none, so there is no snapshot."),
    "a price of nothing": (
        Sound(usd={ATOM.id: Decimal(1), "native;ux": Decimal(1)}),
        "warning: prices: not among the assets: native;ux.",
    ),
    "a scaled price": (
        Sound(usd={ATOM.id: Decimal(1050000000)}),
        "warning: prices: 0, very low or very high: ATOM (native;uatom, 1050000000).",
    ),
    "a price of a denom unit": (
        Sound(usd={ATOM.id: Decimal("0.0000000000001")}),
        "warning: prices: 0, very low or very high: ATOM (native;uatom, 0.0000000000001).",
    ),
    "no price": (Sound(usd={USDT.id: Decimal(1)}), "note: prices: assets without a price, and therefore w"),
    "a debt without a price": (
        Sound(usd={ATOM.id: Decimal(1)}),
        "warning: markets: debt in assets without a price: USDT (token;0xdac).",
    ),
    "a price of later": (
        Sound(observed=lambda at: NOW),
        "error: prices: asked as of 2026-03-01T11:00:00Z, there are later prices, as of 2026-03-01T12",
    ),
    "milliseconds": (
        Sound(observed=lambda at: datetime(1970, 1, 21, tzinfo=UTC)),
        "error: prices: impossible observed_at: ATOM (native;uatom, 1970-01-21T00:00:00Z), USDT (token;0xdac, 1970",
    ),
    "a stale price": (
        Sound(observed=lambda at: at - 2 * DAY),
        "warning: prices: more than a day old: ATOM (native;uat",
    ),
    # Markets.
    "no markets": (Sound(markets_=(), positions_=()), "error: markets: there are none, so there is no snapshot."),
    "a market twice": (
        Sound(markets_=(Market(USDT.id, LEND, None, None), Market(USDT.id, None, None, DEBT))),
        "error: markets: more than once: USDT (token;0xdac).",
    ),
    "percent": (lend(apr=Decimal(4)), "warning: markets: apr is more than 1, which is 100 %: USDT (token;0xdac, 4)."),
    "ratios in percent": (
        Sound(
            markets_=(Market(ATOM.id, None, CollateralMarket(replace(TERMS, liquidation_ltv=Decimal(80)), 5, 5), None),)
        ),
        "warning: markets: liquidation_ltv is more than 1, which is 100 %: ATOM (native;uatom, 80).",
    ),
    "an own ratio in percent": (
        Sound(
            positions_=[Position(ALICE, (Account(0, (Holding(ATOM.id, 250_000_000, liquidation_ltv=Decimal(93)),)),))]
        ),
        "warning: positions: liquidation_ltv is more than 1, which is 100 %: ATOM (native;uatom, 93).",
    ),
    "more debt": (
        Sound(markets_=(Market(USDT.id, replace(LEND, principal=400_000_000), None, DEBT),)),
        "warning: markets: more debt than lend principal: USDT (token;0xdac).",
    ),
    "standard units": (lend(principal=500), "warning: markets: hardly anything in them: USDT (token;0xdac, 500)."),
    "too many units": (lend(principal=10**20), "warning: markets: worth more than 10^13 USD: USDT (token;0xdac, 1000"),
    "a fee in percent": (
        Sound(config_=replace(NO_CONFIG, liquidation_fee=Decimal(2))),
        "warning: config: liquidation_fee is more than 1, which is 100 %: the rules (2).",
    ),
    # Events.
    "an event twice": (Sound(events_=(EVENTS[0], EVENTS[0])), "error: events: more than once: 400."),
    "an event in seconds": (borrow(at=datetime(1970, 1, 21, tzinfo=UTC)), "error: events: impossible at: 400 (1970"),
    "no value": (borrow(usd=None), "warning: events: without usd, so they count in no sum of loans"),
    "an event of nothing": (borrow(asset_id="native;ux"), "warning: events: not among the assets: native;ux."),
    "a loan of nothing": (borrow(amount=None), "error: events: of lending, but without amount: 400."),
    "no leg": (borrow(action=Action.LIQUIDATE), "warning: events: liquidations without leg, which count"),
    "an address": (borrow(address="alice"), "warning: events: addresses that cannot be asked for: alice."),
    "a value": (borrow(usd=Decimal(7)), "warning: events: usd is not amount times price: 400 (7 instead of 1)."),
    # Positions.
    "an address twice": (
        Sound(positions_=(Position(ALICE), Position(ALICE.upper().replace("X", "x")))),
        f"error: positions: more than once: {ALICE}.",
    ),
    "more than all": (
        Sound(positions_=(Position(ALICE, lends=(LendPosition(USDT.id, 0, 10**9),)),)),
        "warning: positions: more lend than the market has: USDT (token;0xdac).",
    ),
    "shares in standard units": (
        Sound(positions_=(Position(ALICE, lends=(LendPosition(USDT.id, 4_000, 5_000),)),)),
        "warning: positions: all of them are worth less than a cent. Shares are in denom units.",
    ),
    "receipts in a wallet": (
        Sound(
            positions_=(
                Position(ALICE, lends=(LendPosition(USDT.id, 4_000, 0),), wallet=(Balance(RECEIPT.id, 10**8),)),
            )
        ),
        "note: positions: lends leave out receipt tokens in wallets, or among collateral, of USDT (token;0xdac). They",
    ),
    "no such pool": (
        Sound(positions_=(Position(ALICE, stakes=(Stake(3, 0, 1, False, None, Decimal(0)),)),)),
        "warning: positions: stakes in pools that ptoken does not have: 3.",
    ),
    # Others.
    "an arrangement twice": (
        Sound(arrangements_=(ARRANGEMENT, ARRANGEMENT)),
        f"error: arrangements: more than once: {BOB} 0.",
    ),
}


@pytest.mark.parametrize(("source", "message"), BAD.values(), ids=BAD)
def test_what_is_wrong_is_said(source: Sound, message: str) -> None:
    lines = said(source)
    assert [line for line in lines if line.startswith(message)], lines


def test_a_past_that_changes_is_an_error_and_a_present_a_warning() -> None:
    source = Sound()

    def pause() -> None:
        source.markets_, source.positions_ = source.markets_[1:], (*source.positions_, Position(ALICE[:-1] + "b"))

    past, present = said(source, pause=pause)
    assert present.startswith(f"warning: positions: asked again as of 2026-03-01T12:00:00Z, {ALICE[:-1]}b was not the")
    assert [past] == [
        "error: markets: asked again as of 2026-01-30T12:00:00Z, ATOM (native;uatom) was there, and then was not. "
        "Answer as of `at`, not as of the time of the call: the past must not change. Keep out whatever depends on "
        "chance, too."
    ]
    numbers = count(1)

    class Live(Sound):
        def prices(self, at: datetime) -> Sequence[Price]:
            return [Price(ATOM.id, at, Decimal(next(numbers))), Price(USDT.id, at, Decimal(1))]

    # Asked as of noon, an hour, a day and 30 days before it, and then again as of 30 days before it.
    (line,) = said(Live())
    assert line.startswith(
        "error: prices: asked again as of 2026-01-30T12:00:00Z, usd of ATOM (native;uatom) was 4, and then 5."
    )


@pytest.mark.parametrize(
    ("at", "what"),
    [
        (1795780800000, "is an int; it must be an aware datetime."),
        ("2026-03-01", "is '2026-03-01', a str; it must be an aware datetime."),
        (datetime(2026, 2, 1), "is 2026-02-01 00:00:00, without a time zone. Use UTC."),  # noqa: DTZ001
    ],
)
def test_a_time_that_is_none_is_told_with_everything_else(at: object, what: str) -> None:
    class Timeless(Sound):
        def events(self, start: datetime, end: datetime) -> Sequence[Event]:
            return [replace(EVENTS[0], at=at)]  # type: ignore[arg-type]

    assert said(Timeless(config_=replace(NO_CONFIG, liquidation_fee=Decimal(2)))) == [
        f"error: events: at of 400 {what} It is left out.",
        "note: events: there are none, so loans originated, liquidations and the histories of addresses are empty.",
        "warning: config: liquidation_fee is more than 1, which is 100 %: the rules (2). It is a fraction.",
    ]


@pytest.mark.parametrize(
    ("history", "message"),
    [
        (10, "history: a value is an int; it must be a timedelta."),
        (-DAY, "history is -1 day, 0:00:00. It must not be negative, nor begin before 1970."),
        (timedelta.max, "history is 999999999 days, 23:59:59.999999. It must not be negative, nor begin before 1970."),
    ],
)
def test_a_history_that_cannot_be_is_an_error(history: timedelta, message: str) -> None:
    class Old(Sound):
        pass

    Old.history = history  # type: ignore[assignment,method-assign]
    assert said(Old()) == [f"error: {message}"]


def test_a_fault_is_told_once() -> None:
    """Not for each instant, and not as a past that changes, although NaN is not equal to itself."""
    assert said(Sound(usd={ATOM.id: Decimal("NaN"), USDT.id: Decimal(1)}))[:1] == [
        "error: prices: usd of ATOM (native;uatom): NaN is not a price: it must be finite, not negative and below "
        "10^20. It is left out."
    ]
    assert len([line for line in said(Sound(usd={ATOM.id: Decimal("NaN")})) if "NaN" in line]) == 1


def test_decimals_that_change_are_an_error() -> None:
    class Redefined(Sound):
        def assets(self, at: datetime) -> Sequence[Asset]:
            return [replace(ATOM, decimals_denom=6 if at > NOW - DAY else 12), USDT, RECEIPT]

    assert said(Redefined())[0] == (
        "error: assets: other decimals_denom as of 2026-02-28T12:00:00Z: ATOM (native;uatom). Decimals never change: "
        "what comes with others is left out."
    )


def test_the_newest_prices_as_those_of_the_past_are_told() -> None:
    class Newest(Sound):
        def prices(self, at: datetime) -> Sequence[Price]:
            return [Price(asset_id, self.observed(at), usd) for asset_id, usd in self.usd.items()]

    (line,) = said(Newest())
    assert line.startswith(
        "warning: prices: those of the past are those of now, with another observed_at: ATOM (native;uatom)."
    )
    # An oracle that has nothing newer, and a stablecoin.
    assert said(Newest(observed=lambda at: min(at, NOW - 30 * DAY)))[0].startswith("warning: prices: more than a day")
    assert not [line for line in said(Newest(usd={USDT.id: Decimal(1)})) if "those of now" in line]


class Ranged(Sound):
    """Excludes the beginning of a range, or includes its end."""

    excludes_start, includes_end = False, False

    def events(self, start: datetime, end: datetime) -> Sequence[Event]:
        return [
            event
            for event in self.events_
            if (start < event.at if self.excludes_start else start <= event.at)
            and (event.at <= end if self.includes_end else event.at < end)
        ]


@pytest.mark.parametrize("ago", [HOUR, 2 * HOUR + timedelta(minutes=7), 400 * HOUR + timedelta(minutes=7)])
def test_a_range_includes_its_beginning_and_excludes_its_end(ago: timedelta) -> None:
    source = Ranged(events_=(replace(EVENTS[0], at=NOW - ago),))
    source.includes_end = True
    (line,) = said(source)
    assert line.startswith("error: events: of all events, those from 2026-0")
    assert "400 was not there, and then was. Each event belongs to one range, [start, end)" in line
    source.includes_end, source.excludes_start = False, True
    (line,) = said(source)
    assert "400 was there, and then was not. Each event" in line


@dataclass
class Late(Sound):
    """Lists an event of some time ago only once it has been asked before."""

    ago: timedelta = timedelta()
    complete: datetime | None = None
    asked: int = 0

    def complete_until(self, at: datetime) -> datetime | None:
        return self.complete

    def events(self, start: datetime, end: datetime) -> Sequence[Event]:
        self.asked += 1
        late = replace(EVENTS[0], id="late", at=NOW - self.ago)
        return [event for event in (*EVENTS[:3], *[late][: self.asked - 1]) if start <= event.at < end]


@pytest.mark.parametrize(
    ("ago", "complete", "is_late"),
    [
        (timedelta(minutes=59), None, True),
        (timedelta(minutes=61), None, False),
        (timedelta(minutes=61), NOW - 2 * HOUR, True),
        (timedelta(minutes=2), NOW - timedelta(minutes=1), False),
    ],
)
def test_events_may_come_late_within_an_hour_or_when_the_source_says_so(
    ago: timedelta, complete: datetime | None, is_late: bool
) -> None:
    lines = [line for line in said(Late(ago=ago, complete=complete)) if "late was not there" in line]
    assert len(lines) == (not is_late)


def test_what_raises_is_told_and_the_rest_is_asked_for() -> None:
    class Broken(Sound):
        @property
        def since(self) -> datetime:
            raise KeyError("launch.")

        def markets(self, at: datetime) -> Sequence[Market]:
            raise ConnectionError("no route to the node.")

        def ptoken(self, at: datetime) -> Ptoken:
            raise SourceError("The node is away..")

    assert [line for line in said(Broken(positions_=())) if not line.startswith("note")] == [
        "error: since: asked as of 2026-03-01T12:00:00Z, it raised KeyError: 'launch.'. Only SourceError is tried "
        "again; any other exception costs the snapshot.",
        "error: markets: asked as of 2026-03-01T12:00:00Z, it raised ConnectionError: no route to the node. Only "
        "SourceError is tried again; any other exception costs the snapshot.",
        "error: ptoken: The node is away. If this lasts, there is no snapshot.",
    ]


@pytest.mark.parametrize(("history", "level"), [(None, "note"), (30 * DAY, "warning")])
def test_a_source_need_not_know_the_past_unless_it_says_so(history: timedelta | None, level: str) -> None:
    class Recent(Sound):
        @property
        def history(self) -> timedelta | None:
            return history

        def prices(self, at: datetime) -> Sequence[Price]:
            if at < NOW:
                raise SourceError("The node has pruned it.")
            return super().prices(at)

    assert said(Recent()) == [
        f"{level}: prices: no answer as of 2026-03-01T11:00:00Z, so there is no backfill of that time. The node has "
        "pruned it."
    ]


@pytest.mark.parametrize(
    ("seconds", "lines"),
    [
        (20, []),
        (40, ["warning: prices: an answer took 40 s, and may take 60 s (ANALYTICS_EVERY)."]),
        (70, ["error: prices: an answer took 70 s, and may take 60 s (ANALYTICS_EVERY)."]),
    ],
)
def test_an_answer_that_takes_long_is_told(seconds: int, lines: list[str]) -> None:
    clock = [0.0]

    class Slow(Sound):
        def prices(self, at: datetime) -> Sequence[Price]:
            clock[0] += seconds
            return super().prices(at)

    assert [line[: len(lines[0])] for line in said(Slow(), clock=lambda: clock[0])] == lines


def test_a_message_names_three_and_counts_the_rest() -> None:
    assert listed(["a", "b", "a", "c"]) == "a, b, c"
    assert listed("abcde") == "a, b, c and 2 more"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("none", "There is nothing to check: the source is none."),
        ("magic", "'magic' is not a source: it must be simulated"),
        ("sql:research_mine", "sql:research_mine has no views: there is nothing in the data folder"),
    ],
)
def test_a_source_that_cannot_be_opened_exits_with_2(spec: str, message: str, tmp_path: Path) -> None:
    result = run("source", "check", spec, ANALYTICS_DATA_DIR=str(tmp_path / "data"))
    assert result.exit_code == 2
    assert message in result.stderr


def test_the_end_counts_errors_and_warnings(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        _report([Finding(Level.ERROR, "a"), Finding(Level.WARNING, "b"), Finding(Level.WARNING, "c")])
    assert capsys.readouterr().out.endswith("1 error, 2 warnings.\n")
