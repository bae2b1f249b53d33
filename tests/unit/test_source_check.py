"""What `source check` says of sources, without the queries that inspect its scratch store."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from analytics_service.cli.sources import _report
from analytics_service.clickhouse.queries import Placeholders
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
from analytics_service.market.rates import Rates
from analytics_service.sources.base import Source
from jobs.check import Finding, Level, Plan, check
from tests.doubles import FakeStore
from tests.unit.test_cli import run

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
ALICE, BOB, CAROL = ("0x" + letter * 40 for letter in "abc")
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

    spec: str = "simulated:1"
    simulated = True
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
    jump: dict[datetime, int] = field(default_factory=dict)

    def assets(self, at: datetime) -> Sequence[Asset]:
        return self.assets_

    def prices(self, at: datetime) -> Sequence[Price]:
        """The prices, which were a dollar higher on each day before."""
        days, factor = (NOW - at).days, self.jump.get(at, 1)
        prices = ((key, usd + days if days else usd) for key, usd in self.usd.items())
        return [Price(key, self.observed(at), usd if factor == 1 else usd * factor) for key, usd in prices]

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


class Scratch(FakeStore):
    """A store that forgets what is written, so that each job asks for each instant. Its owner is `simulated:1`."""

    def insert_if(self, *_: object, **__: object) -> bool:
        return True

    def query(self, query: str, parts: Placeholders = (), **parameters: object) -> pl.DataFrame:
        if query == "read_digests":
            return pl.DataFrame(schema={"address": pl.String, "digest": pl.UInt64, "complete": pl.Boolean})
        return super().query(query, parts, **parameters)


def said(source: Source, **plan: Any) -> list[str]:
    """The lines about what a check finds, each once."""
    steps = check(source, Scratch(), Plan(NOW, **plan))
    return list(dict.fromkeys(f"{step.level}: {step.message}" for step in steps if isinstance(step, Finding)))


def test_a_sound_source_is_asked_by_every_job_at_three_instants() -> None:
    lines = [*check(Sound(), Scratch(), Plan(NOW))]
    assert [step for step in lines if isinstance(step, Finding)] == []
    begin, middle, end = (lines.index(f"As of 2026-{at}:00:00Z:") for at in ("02-28T12", "03-01T11", "03-01T12"))
    answers = dict(line.split()[:2] for line in map(str, lines[end + 1 :]) if " in " in line)
    assert answers["assets"] == "3"
    assert answers["positions"] == "2"
    assert begin < middle < end


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            Sound(
                assets_=(ATOM, USDT, replace(USDT, group_key="0xDAC"), RECEIPT),
                usd={USDT.id: Decimal(1), "native;ux": Decimal(1)},
                positions_=(
                    Position(ALICE, wallet=(Balance(ATOM.id, 5), Balance(RECEIPT.id, 5))),
                    Position(ALICE.upper().replace("X", "x"), wallet=(Balance(ATOM.id, 5),)),
                ),
                events_=(replace(EVENTS[2], asset_id="native;ux", address="alice"),),
            ),
            [
                "error: assets: more than once: token;0xdac. Define each asset once",
                f"error: positions: address of {ALICE} comes more than once. Put all items",
                "warning: prices: not among the assets: native;ux.",
                "warning: events: not among the assets: native;ux.",
                "warning: events: invalid addresses, which nobody can request: alice.",
            ],
        ),
        (
            Sound(
                usd={ATOM.id: 10.5, USDT.id: Decimal("NaN"), RECEIPT.id: Decimal(1)},
                events_=(replace(EVENTS[0], id=7), replace(EVENTS[1], amount=None)),  # type: ignore[arg-type]
            ),
            [
                "error: prices: usd of native;uatom is the float 11.5. Floats are not exact.",
                "error: prices: usd of token;0xdac: NaN is not a price",
                "error: events: id of 7 is an int; it must be a str. It is rejected.",
                "error: events: amount of 30 is missing in an event of lending. It is rejected.",
            ],
        ),
        (
            Sound(observed=lambda at: NOW + 2 * DAY),
            [
                "error: prices, markets, positions: no snapshot as of 2026-03-01T12:00:00Z: simulated:1 quotes no val",
                "error: prices: the answer for 2026-02-28T12:00:00Z has later prices, of 2026-03-03T12:00:00Z: ",
            ],
        ),
        (
            Sound(observed=lambda at: NOW - 26 * HOUR),
            ["error: prices: several at one observed_at: native;uatom, token;0xdac."],
        ),
    ],
    ids=["names", "values", "later", "one time"],
)
def test_what_is_wrong_is_said(source: Sound, expected: list[str]) -> None:
    expect(said(source), expected)


def expect(lines: Sequence[str], expected: Sequence[str]) -> None:
    for message in expected:
        assert [line for line in lines if line.startswith(message)], lines


def test_a_past_that_changes_is_an_error_and_a_present_a_warning() -> None:
    source = Sound()

    def pause() -> None:
        source.markets_, source.positions_ = source.markets_[1:], (*source.positions_, Position(CAROL))

    past, present = said(source, pause=pause)
    assert past == (
        "error: markets: asked again as of 2026-02-28T12:00:00Z, native;uatom was there, then missing. Answer as "
        "of `at`, not as of the call: the past must not change."
    )
    assert present.startswith(f"warning: positions: asked again as of 2026-03-01T12:00:00Z, {CAROL} was missing")


def test_a_past_that_depends_on_the_call_and_one_that_is_not_the_past_are_told() -> None:
    numbers = count(1)

    class Live(Sound):
        def prices(self, at: datetime) -> Sequence[Price]:
            return [Price(asset_id, at, usd) for asset_id, usd in self.usd.items()]

        def ptoken(self, at: datetime) -> Ptoken:
            return replace(PTOKEN, total_supply=next(numbers))

    expect(
        said(Live()),
        [
            "warning: prices: past prices equal present ones, with another observed_at: native;uatom.",
            # Asked as of a day ago, an hour ago and now, and then again as of a day ago.
            "error: ptoken: asked again as of 2026-02-28T12:00:00Z, total_supply of native;uatom was 1, then",
        ],
    )


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


@pytest.mark.parametrize(
    ("wrong", "what"), [("excludes_start", "there, then missing"), ("includes_end", "missing, then there")]
)
def test_a_range_includes_its_beginning_and_excludes_its_end(wrong: str, what: str) -> None:
    source = Ranged(events_=(replace(EVENTS[0], at=NOW - 2 * HOUR - timedelta(minutes=7)),))
    setattr(source, wrong, True)
    (line,) = said(source)
    assert line.startswith("error: events: from 2026-03-01T09:5")
    assert f"range: 400 was {what}" in line


def test_events_may_come_late_within_an_hour() -> None:
    for minutes, is_late in ((59, True), (61, False)):
        source = Sound()
        late = replace(EVENTS[0], id="late", at=NOW - timedelta(minutes=minutes))
        lines = said(source, pause=partial(setattr, source, "events_", (*EVENTS, late)))
        assert ["late was missing" in line for line in lines] == [True] * (not is_late)


def test_what_raises_is_told_and_the_rest_is_asked_for() -> None:
    class Broken(Sound):
        def ptoken(self, at: datetime) -> Ptoken:
            raise SourceError("The node is away.")

        def swaps(self, at: datetime) -> Sequence[SwapContract]:
            raise ConnectionError("no route to the node.")

    lines = [line for line in said(Broken()) if line.startswith("error")]
    assert lines == [
        "error: ptoken, positions: no snapshot as of 2026-03-01T12:00:00Z: The node is away. It was asked for ptoken "
        "as of 2026-03-01T12:00:00Z.",
        "error: routes: no snapshot as of 2026-03-01T12:00:00Z: ConnectionError: no route to the node. Raise "
        "SourceError if the call can be retried.",
    ]


def test_a_source_need_not_know_the_past_unless_it_says_so() -> None:
    class Recent(Sound):
        def swaps(self, at: datetime) -> Sequence[SwapContract]:
            if at < NOW:
                raise SourceError("The node has pruned it.")
            return super().swaps(at)

    for history, level in ((None, "note"), (30 * DAY, "warning")):
        Recent.history = history  # type: ignore[assignment,method-assign]
        assert said(Recent()) == [
            f"{level}: routes: no backfill up to 2026-03-01T11:00:00Z: The node has pruned it. It was asked for swaps "
            "as of 2026-03-01T11:00:00Z."
        ]


@pytest.mark.parametrize(
    ("seconds", "lines"),
    [
        (20, []),
        (40, ["warning: rates: a snapshot took 40 s; the limit is 60 s."]),
        (70, ["error: rates: a snapshot took 70 s; the limit is 60 s."]),
    ],
)
def test_a_snapshot_that_takes_long_is_told(seconds: int, lines: list[str]) -> None:
    clock = [0.0]

    class Slow(Sound):
        def rates(self, at: datetime) -> Rates:
            clock[0] += seconds
            return super().rates(at)

    assert said(Slow(), clock=lambda: clock[0]) == lines


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("none", "The source is none, so there is nothing to check."),
        ("magic", "'magic' is not a source: it must be simulated"),
        ("sql:research_mine", "sql:research_mine has no views, because there is no data in the data folder"),
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
