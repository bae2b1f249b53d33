"""Asks a source for everything, now and as of past instants, and again later; yields what is wrong with it."""

import time
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import chain, pairwise
from typing import Any

from analytics_service.config.settings import Settings
from analytics_service.errors import SourceError
from analytics_service.market.assets import Asset
from analytics_service.market.events import Event
from analytics_service.market.instants import EPOCH, shown
from analytics_service.market.markets import GlobalConfig, Market
from analytics_service.market.positions import Position, SwapContract
from analytics_service.market.prices import Price
from analytics_service.market.ptoken import Arrangement, Ptoken
from analytics_service.sources.base import Source
from analytics_service.sources.checking.findings import (
    Finding,
    Records,
    difference,
    error,
    fitting,
    note,
    sentence,
    warning,
    with_symbols,
)
from analytics_service.sources.checking.judging import (
    judge,
    judge_decimals,
    judge_past_prices,
    judge_unmoved_prices,
)

# How long ago the past instants are; a source with history is asked for its beginning, too.
_AGO = (timedelta(hours=1), timedelta(days=1))
_FIRST = timedelta(days=30)
# What a record costs that cannot be stored, where it does not cost the whole snapshot.
_ITSELF = "It is left out."


@dataclass(frozen=True, slots=True)
class SourcePart:
    """What a source has under a name: records of the type `of`, for a job. `without` says what is not shown when there
    are none; else there is no snapshot. `cost` is that of a record that cannot be stored."""

    name: str
    of: Any
    job: str = "prices"
    without: str = ""
    cost: str = "The whole snapshot is lost."


ASSETS = SourcePart("assets", Asset, cost=_ITSELF)
PRICES = SourcePart("prices", Price, cost=_ITSELF)
EVENTS = SourcePart(
    "events",
    Event,
    "loans",
    "loans originated, liquidations and the histories of addresses are empty",
    cost=_ITSELF,
)
POSITIONS = SourcePart(
    "positions",
    Position,
    "positions",
    "every address is without accounts, deposits and wallet, and there is no risk",
    cost=_ITSELF,
)
PARTS = (
    ASSETS,
    PRICES,
    SourcePart("markets", Market, "markets", cost=_ITSELF),
    SourcePart("config", GlobalConfig, "markets"),
    EVENTS,
    SourcePart("ptoken", Ptoken, "ptoken"),
    SourcePart("arrangements", Arrangement, "ptoken", "there are no unlocks"),
    POSITIONS,
    SourcePart("swaps", SwapContract, "routes", "there are no swap routes"),
)
# The attributes of a source, and what it says of its events; spec is looked at when it is opened.
_TYPES = dict.fromkeys(("simulated", "has_markets", "at_ends"), bool) | {
    "since": datetime | None,
    "history": timedelta | None,
    "complete_until": datetime | None,
}
_ATTRIBUTES = tuple(SourcePart(name, of, cost="") for name, of in _TYPES.items())
_COMPLETE = SourcePart("complete_until", datetime | None, cost="")


@dataclass(frozen=True, slots=True)
class Plan:
    """How to check a source: the present instant (whole second), and settings with the seconds between snapshots and
    those that an answer may take. `pause` waits before everything is asked for the last time."""

    now: datetime
    settings: Settings = Settings()
    pause: Callable[[], None] = lambda: None
    clock: Callable[[], float] = time.monotonic


# A line for people about what is asked for, or about an answer as of now; or something that is wrong.
Step = str | Finding
# The steps of asking for a part, which return its records, or None when there is no answer that can be used.
Asking = Generator[Step, None, Records | None]


def check(source: Source, plan: Plan) -> Iterator[Step]:
    """The answers as they come, and everything that is wrong with the source. The same finding may come again."""
    run = _Check(source, plan)
    for step in run.steps():
        yield with_symbols(step, run.symbols) if isinstance(step, Finding) else step


class _Check:
    """A check under way. `_answers` has the first answer of each part as of each instant."""

    def __init__(self, source: Source, plan: Plan) -> None:
        self._source = source
        self._plan = plan
        self._has_history = False
        # Later events may be listed late.
        self._complete = plan.now - timedelta(seconds=plan.settings.events_lateness)
        # The past instants, the newest first.
        self.instants: list[datetime] = []
        self._answers: dict[tuple[SourcePart, datetime], Records] = {}
        # Parts that had no answer, or one that cannot be stored, causes why records cannot be stored, parts whose past
        # is not that of its time, and those that were slow: each is told once.
        self._refusing: set[SourcePart] = set()
        self._told: set[Any] = set()
        self._unsteady: set[SourcePart] = set()
        self._slow: set[SourcePart] = set()

    @property
    def symbols(self) -> dict[str, str]:
        """The symbols of assets by id, as far as the source has been asked."""
        answers = [answer for (part, _), answer in self._answers.items() if part is ASSETS]
        return {asset.id: asset.symbol for answer in reversed(answers) for asset in answer}

    def steps(self) -> Iterator[Step]:
        """All steps, in their order."""
        yield from self.attributes()
        yield f"As of {shown(self._plan.now)}:"
        yield from self.present()
        for at in self.instants:
            yield f"As of {shown(at)} ..."
            yield from self.past(at)
        self._plan.pause()
        yield "The same again ..."
        yield from self.again()
        yield from self.windows()

    def attributes(self) -> Iterator[Step]:
        """The types of attributes, the instants that follow from the history, and up to when events are complete."""
        now, length = self._plan.now, None
        answer = yield from self._ask(_COMPLETE, now)
        if answer and answer[0]:
            self._complete = answer[0]
        for part in _ATTRIBUTES:
            answer = yield from self._ask(part, now)
            if answer and part.name == "history":
                length = answer[0]
        if length and not timedelta() <= length <= now - EPOCH:
            yield error(f"history is {length}. It must not be negative, nor begin before 1970.")
            length = None
        self._has_history = bool(length)
        self.instants = sorted({now - ago for ago in (*_AGO, length or _FIRST)}, reverse=True)

    def present(self) -> Iterator[Step]:
        """Everything as of now: can it be stored, is it plausible, and how long does it take?"""
        usable = dict[str, Any]()
        for part in PARTS:
            answer = yield from self._first(part, self._plan.now)
            if answer is None:
                continue
            usable[part.name] = answer
            if not answer and part.name == "markets" and not self._source.has_markets:
                yield note("markets: there are none, so rates, markets and the total value locked are empty.")
            elif not answer:
                level = note if part.without else error
                yield level(f"{part.name}: there are none, so {part.without or 'there is no snapshot'}.")
        yield from judge(self._plan.now, usable)

    def past(self, at: datetime) -> Iterator[Step]:
        """What the source says of a past instant. A part without a usable answer before is not asked."""
        for part in PARTS:
            if part in (EVENTS, POSITIONS) or part in self._refusing:
                continue
            answer = yield from self._first(part, at)
            if part is ASSETS and answer is not None:
                yield from judge_decimals(at, self._answers[ASSETS, self._plan.now], answer)
            if answer is None or part is not PRICES:
                continue
            if not answer:
                yield note(f"prices: there are none as of {shown(at)}, so history begins later.")
            faults = [] if part in self._unsteady else list(judge_past_prices(at, answer))
            if at == self.instants[-1]:
                earlier = [self._answers.get((PRICES, instant), ()) for instant in self.instants]
                faults += judge_unmoved_prices(self._answers[PRICES, self._plan.now], [*chain(*earlier)])
            if faults:
                self._unsteady.add(part)
                yield from faults

    def again(self) -> Iterator[Step]:
        """Whether the source says the same again."""
        # The oldest first: that the past changes matters most.
        for (part, at), before in sorted(self._answers.items(), key=lambda answer: answer[0][1]):
            if part in self._unsteady or part is EVENTS:
                continue
            answer = yield from self._ask(part, at)
            if answer is None or not (what := difference(before, answer)):
                continue
            self._unsteady.add(part)
            words = f"{part.name}: asked again as of {shown(at)}, {what}. Answer as of `at`, not as of the time of the"
            if at < self._plan.now:
                yield error(f"{words} call: the past must not change. Keep out whatever depends on chance, too.")
            else:
                yield warning(f"{words} call: else a snapshot that is taken again differs.")

    def windows(self) -> Iterator[Step]:
        """Whether the events of shorter ranges are those of all time within these ranges, but for those that came late.
        One range begins, and one ends, exactly at an event."""
        every, now = self._answers.get((EVENTS, self._plan.now), ()), self._plan.now
        # Ranges begin and end at whole seconds.
        times = [event.at for event in every if not event.at.microsecond and EPOCH < event.at < now]
        newest = max(times, default=now).astimezone(UTC)
        ends = sorted({*self.instants, now, newest, newest + timedelta(seconds=1)})
        known = {event.id for event in every}
        for start, end in pairwise(ends if (EVENTS, now) in self._answers else ()):
            answer = yield from self._ask(EVENTS, end, start)
            expected = [event for event in every if start <= event.at < end]
            in_time = [event for event in answer or () if event.at <= self._complete or event.id in known]
            if answer is not None and (what := difference(expected, in_time)):
                yield error(
                    f"events: of all events, those from {shown(start)} on and before {shown(end)} are not "
                    f"the ones that the source has for this range: {what}. Each event belongs to one range, "
                    "[start, end): one that is not in its range when it is asked for again leaves the store."
                )
                return

    def _first(self, part: SourcePart, at: datetime) -> Asking:
        """Ask for a part as of an instant, and remember the answer."""
        began = self._plan.clock()
        answer = yield from self._ask(part, at)
        if answer is not None and at == self._plan.now:
            yield f"  {part.name:<12} {len(answer):>9,} in {self._plan.clock() - began:.2f} s"
        if answer is None:
            self._refusing.add(part)
            return None
        self._answers[part, at] = answer
        return answer

    def _ask(self, part: SourcePart, at: datetime, start: datetime = EPOCH) -> Asking:
        """Ask for a part as of an instant; for events from `start` on and before it. Returns the records that can
        be stored; None if one that cannot costs the whole snapshot."""
        began = self._plan.clock()
        try:
            answer = getattr(self._source, part.name)
            if callable(answer):
                answer = answer(start, at) if part is EVENTS else answer(at)
            records = list(answer) if isinstance(answer, Iterable) else [answer]
        except SourceError as fault:
            if at == self._plan.now:
                yield error(f"{part.name}: {sentence(fault)} If this lasts, there is no snapshot.")
            else:
                yield (warning if self._has_history else note)(
                    f"{part.name}: no answer as of {shown(at)}, so there is no backfill of that time. {sentence(fault)}"
                )
            return None
        # Any exception, because the source may come from another package.
        except Exception as fault:
            yield error(
                f"{part.name}: asked as of {shown(at)}, it raised {type(fault).__name__}: {sentence(fault)} Only "
                "SourceError is tried again; any other exception costs the snapshot."
            )
            return None
        # The first snapshot asks for all events.
        every, seconds = getattr(self._plan.settings.every, part.job), self._plan.clock() - began
        limit = self._plan.settings.source_timeout if part is EVENTS else every
        if seconds > limit / 2 and part not in self._slow:
            self._slow.add(part)
            yield (error if seconds > limit else warning)(
                f"{part.name}: an answer took {seconds:.0f} s, and may take {limit} s "
                f"(ANALYTICS_{'SOURCE_TIMEOUT' if part is EVENTS else 'EVERY'})."
            )
        fit = yield from fitting(part.name, records, part.of, part.cost, self._told)
        return fit if part.cost == _ITSELF or len(fit) == len(records) else None
