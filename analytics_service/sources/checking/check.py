"""Asks a source for everything, now and as of past instants, and again later; yields what is wrong with it."""

import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from analytics_service.config.settings import Settings
from analytics_service.errors import SourceError
from analytics_service.market.instants import EPOCH, shown
from analytics_service.sources.base import Source
from analytics_service.sources.checking.findings import Finding, error, note, sentence, warning
from analytics_service.sources.checking.judging import SourceAnswers, judge, judge_past_prices, judge_unmoved_prices
from analytics_service.sources.checking.misfits import misfits
from analytics_service.sources.checking.parts import EVENTS, PARTS, PRICES, Records, SourcePart, difference, misfit

# How long ago the past instants are; a source with history is asked for its beginning, too.
_AGO = (timedelta(hours=1), timedelta(days=1))
_FIRST = timedelta(days=30)
# The attributes of a source and their types; spec is looked at when it is opened.
_ATTRIBUTES = {
    "simulated": bool,
    "has_markets": bool,
    "at_ends": bool,
    "history": timedelta | None,
    "since": datetime | None,
}


@dataclass(frozen=True, slots=True)
class Plan:
    """How to check a source: the present instant (whole second), and settings with the seconds between snapshots and
    those that an answer may take. `pause` waits before everything is asked for the last time."""

    now: datetime
    settings: Settings = Settings()
    pause: Callable[[], None] = lambda: None
    clock: Callable[[], float] = time.monotonic


@dataclass(frozen=True, slots=True)
class Answered:
    """A part that has answered as of now: the number of its records and the seconds that it took."""

    part: str
    count: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Stage:
    """What is asked for next, in words."""

    words: str


Step = Answered | Stage | Finding
# The steps of asking for a part, which return its records, or None when there is no answer that can be used.
Asking = Generator[Step, None, Records | None]


def check(source: Source, plan: Plan) -> Iterator[Step]:
    """The answers as they come, and everything that is wrong with the source."""
    run = _Check(source, plan)
    yield from run.attributes()
    yield Stage(f"As of {shown(plan.now)}:")
    yield from run.present()
    for at in run.instants:
        yield Stage(f"As of {shown(at)} ...")
        yield from run.past(at)
    yield from run.unmoved()
    yield Stage("The same again ...")
    yield from run.windows()
    yield from run.again("at once")
    plan.pause()
    yield Stage("The same for the last time ...")
    yield from run.again("later")


class _Check:
    """A check under way. `_answers` has the first answer of each part as of each instant."""

    def __init__(self, source: Source, plan: Plan) -> None:
        self._source = source
        self._plan = plan
        self._has_history = False
        # The past instants, the newest first.
        self.instants: list[datetime] = []
        self._answers: dict[tuple[SourcePart, datetime], Records] = {}
        # Parts that had no answer, or one that cannot be stored: each is told once.
        self._refusing: set[SourcePart] = set()
        # Parts whose past is not that of its time, and those that were slow: each is told once.
        self._unsteady: set[SourcePart] = set()
        self._slow: set[str] = set()

    def attributes(self) -> Iterator[Step]:
        """The types of attributes, and the instants that follow from the history."""
        values = dict[str, Any]()
        for name, declared in _ATTRIBUTES.items():
            try:
                value = getattr(self._source, name)
            # Any exception, because the source may come from another package.
            except Exception as fault:
                yield error(f"{name}: it raised {type(fault).__name__}: {sentence(fault)}")
                continue
            if found := next(misfits(value, declared), None):
                yield error(f"{name}{found.problem}")
            else:
                values[name] = value
        history, now = values.get("history"), self._plan.now
        if history is not None and not timedelta() <= history <= now - EPOCH:
            yield error(f"history is {history}. It must not be negative, nor begin before 1970.")
            history = None
        self._has_history = bool(history)
        self.instants = sorted({now - ago for ago in (*_AGO, history or _FIRST)}, reverse=True)

    def present(self) -> Iterator[Step]:
        """Everything as of now: can it be stored, is it plausible, and how long does it take?"""
        now, usable = self._plan.now, dict[str, Any]()
        required = {"assets", "prices", "config", "ptoken", *(["markets"] if self._source.has_markets else [])}
        for part in PARTS:
            answer = yield from self._first(part, now)
            if answer is None:
                continue
            usable[part.name] = answer
            if not answer and part.name in required:
                yield error(f"{part.name}: there are none, so there is no snapshot.")
            elif not answer:
                yield note(f"{part.name}: there are none, so {part.without}.")
        yield from judge(SourceAnswers(now, **usable))

    def past(self, at: datetime) -> Iterator[Step]:
        """What the source says of a past instant. A part without a usable answer before is not asked."""
        for part in PARTS:
            if not part.has_past or part is EVENTS or part in self._refusing:
                continue
            answer = yield from self._first(part, at)
            if answer is None or part is not PRICES:
                continue
            if not answer:
                yield note(f"prices: there are none as of {shown(at)}, so history begins later.")
            elif part not in self._unsteady:
                for fault in judge_past_prices(SourceAnswers(at, prices=answer)):
                    self._unsteady.add(part)
                    yield fault

    def unmoved(self) -> Iterator[Step]:
        """Whether the prices of the past are those of now."""
        answers = [
            SourceAnswers(at, prices=self._answers[PRICES, at])
            for at in (self._plan.now, *self.instants)
            if self._answers.get((PRICES, at))
        ]
        if answers and answers[0].at == self._plan.now:
            yield from judge_unmoved_prices(answers[0], answers[1:])

    def windows(self) -> Iterator[Step]:
        """Whether the events of shorter ranges are those of all time within these ranges. One range begins, and one
        ends, exactly at an event."""
        every = self._answers.get((EVENTS, self._plan.now))
        if every is None:
            return
        # Ranges begin and end at whole seconds.
        times = [event.at for event in every if not event.at.microsecond and EPOCH < event.at < self._plan.now]
        newest = max(times, default=self._plan.now).astimezone(UTC)
        exact = {newest, newest - timedelta(seconds=1)}
        for after, until in pairwise(sorted({*self.instants, self._plan.now, *exact})):
            yield from self._window(every, after, until)

    def again(self, when: str) -> Iterator[Step]:
        """Whether the source says the same again."""
        # The oldest first: that the past changes matters most.
        for (part, at), before in sorted(self._answers.items(), key=lambda answer: answer[0][1]):
            if part in self._unsteady or part is EVENTS:
                continue
            answer = yield from self._ask(part, at)
            if answer is None or not (what := difference(before, answer)):
                continue
            self._unsteady.add(part)
            if at < self._plan.now:
                yield error(
                    f"{part.name}: asked again {when} as of {shown(at)}, {what}. The past must not change: answer as "
                    "of `at`, and keep out whatever depends on the clock or on chance."
                )
            else:
                yield warning(
                    f"{part.name}: asked again {when} as of {shown(at)}, {what}. A snapshot that is taken again then "
                    "differs. Answer as of `at`, not as of the time of the call."
                )
        every = self._answers.get((EVENTS, self._plan.now))
        if every is not None:
            yield from self._window(every, self.instants[0], self._plan.now)

    def _window(self, every: Records, after: datetime, until: datetime) -> Iterator[Step]:
        if EVENTS in self._unsteady:
            return
        window = replace(EVENTS, ask=lambda source, at: source.events(after, at))
        answer = yield from self._ask(window, until)
        if answer is None:
            return
        what = difference([event for event in every if after < event.at <= until], answer)
        if what:
            self._unsteady.add(EVENTS)
            yield error(
                f"events: of all events, those later than {shown(after)} and not later than {shown(until)} are not the "
                f"ones that the source has for this range: {what}. Each event belongs to one range, "
                "(after, until], and is read once."
            )

    def _first(self, part: SourcePart, at: datetime) -> Asking:
        """Ask for a part as of an instant, and remember the answer if it can be stored."""
        began = self._plan.clock()
        answer = yield from self._ask(part, at)
        if answer is not None and at == self._plan.now:
            yield Answered(part.name, len(answer), self._plan.clock() - began)
        fault = misfit(part, answer) if answer else None
        if fault:
            yield fault
        if answer is None or fault:
            self._refusing.add(part)
            return None
        self._answers[part, at] = answer
        return answer

    def _ask(self, part: SourcePart, at: datetime) -> Asking:
        """Ask for a part as of an instant."""
        began = self._plan.clock()
        try:
            records = list(part.ask(self._source, at))
        except SourceError as fault:
            yield self._refused(part, at, str(fault))
            return None
        # Any exception, because the source may come from another package.
        except Exception as fault:
            yield error(
                f"{part.name}: asked as of {shown(at)}, it raised {type(fault).__name__}: {sentence(fault)} Only "
                "SourceError is tried again; any other exception costs the snapshot."
            )
            return None
        slow = self._delay(part, self._plan.clock() - began)
        if slow and part.name not in self._slow:
            self._slow.add(part.name)
            yield slow
        return records

    def _refused(self, part: SourcePart, at: datetime, reason: str) -> Finding:
        if at == self._plan.now:
            return error(f"{part.name}: {sentence(reason)} If this lasts, there is no snapshot.")
        level = warning if self._has_history else note
        return level(
            f"{part.name}: no answer as of {shown(at)}, so there is no backfill of that time. {sentence(reason)}"
        )

    def _delay(self, part: SourcePart, seconds: float) -> Finding | None:
        """What to say of the time that an answer took, if it was long."""
        every, timeout = getattr(self._plan.settings, f"{part.job}_every"), self._plan.settings.source_timeout
        if part.name == EVENTS.name:
            if seconds > timeout / 2:
                return warning(
                    f"events: all of them took {seconds:.0f} s. The first snapshot asks for them, and has {timeout} s "
                    "(ANALYTICS_SOURCE_TIMEOUT)."
                )
        elif seconds > every / 2:
            level = error if seconds > every else warning
            return level(
                f"{part.name}: an answer took {seconds:.0f} s, and there is a snapshot every {every} s. Answer faster, "
                f"or set ANALYTICS_{part.job.upper()}_EVERY."
            )
        return None
