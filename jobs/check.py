"""Checks a source: runs the real jobs into a scratch store, asks everything again, and reports what is wrong."""

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.embedded.clickhouse import clickhouse
from analytics_service.errors import SourceError, StoreUnavailable
from analytics_service.market.assets import Asset, id_key, parse_address
from analytics_service.market.decimals import ONE
from analytics_service.market.events import Event
from analytics_service.market.instants import EPOCH, format_instant, from_unix, unix_second
from analytics_service.market.markets import NO_CONFIG, Market
from analytics_service.market.positions import Position, SwapContract
from analytics_service.market.prices import Price
from analytics_service.market.ptoken import STAND_IN, Arrangement, Ptoken
from analytics_service.market.validation import list_in_words, name_record, validate
from analytics_service.sources.base import Source
from analytics_service.sources.calls import OpenSource, read_whole
from analytics_service.store.migrations import migrate
from jobs.registry import JOBS
from jobs.rejections import Rejections
from jobs.runner import take_snapshot

# Ages of the instants, oldest first, and how far the source's clock may be ahead.
_AGO = (timedelta(days=1), timedelta(hours=1), timedelta())
_CLOCKS, _SECOND = timedelta(minutes=1), timedelta(seconds=1)
_ATTRIBUTES = dict.fromkeys(("simulated", "has_markets", "at_ends"), bool) | {
    "since": datetime | None,
    "history": timedelta | None,
}
_RECORDS: Mapping[str, Any] = {
    "assets": Asset,
    "prices": Price,
    "markets": Market,
    "events": Event,
    "ptoken": Ptoken,
    "arrangements": Arrangement,
    "positions": Position,
    "swaps": SwapContract,
}
# Answers whose records must have distinct ids, or addresses and indexes; and what to do if they do not.
_IDENTITIES = {
    "assets": "Define each asset once, with its id in one case, such as lower case.",
    "markets": "Put lend, collateral and debt of an asset into one Market.",
    "events": "Of events with one id, only one is kept.",
    "arrangements": "Give each arrangement of an address its own index.",
}


class Level(StrEnum):
    """The severity of a finding: data is lost or wrong, data is probably wrong, or something is not shown."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Finding:
    """A fault of a source, with what to do."""

    level: Level
    message: str


error, warning, note = (partial(Finding, level) for level in Level)
# A line about an answer, or a fault.
Step = str | Finding


@dataclass(frozen=True, slots=True)
class Plan:
    """How to check a source: the present instant (whole second) and settings. `pause` waits before the second round."""

    now: datetime
    settings: Settings = field(default_factory=Settings)
    pause: Callable[[], None] = lambda: None
    clock: Callable[[], float] = time.monotonic


@contextmanager
def scratch_store() -> Iterator[Store]:
    """An empty store in a temporary folder, with its own ClickHouse."""
    with (
        TemporaryDirectory(prefix="analytics-check-") as folder,
        clickhouse(Settings(data_dir=Path(folder)), "source check") as settings,
        closing(Store(settings)) as store,
    ):
        migrate(store)
        yield store


def check(source: Source, store: Store, plan: Plan) -> Iterator[Step]:
    """Ask the source as jobs do, and yield its answers and faults. Fills the store, which must be empty."""
    instants = [plan.now - ago for ago in _AGO]
    yield from _attributes(source)
    first, losses = _Recorder(source, plan.clock), _Losses()
    # Everything else needs assets.
    if (yield from _ask("assets", partial(first.assets, plan.now))) is None:
        return
    for at in instants:
        yield f"As of {format_instant(at)}:"
        yield from _run_jobs(first, store, at, plan, losses)
        yield from first.lines(at)
    history = yield from _ask("history", lambda: source.history)
    yield from losses.findings(plan.now, warning if history else note)
    lost = {job for job, (at, _) in losses.failed.items() if at == plan.now}
    every = EPOCH, plan.now + _SECOND
    if "loans" not in lost:
        yield from _ask("events", partial(first.events, *every))
    answers = {name: first.records(name, *(every if name == "events" else [plan.now])) for name in _RECORDS}
    yield from _identities(answers)
    yield from _prices({at: first.records("prices", at) for at in instants}, plan.now)
    # A source that counts its users itself does not have all positions.
    is_whole = "positions" not in lost and first.answers.get(("activity", (plan.now,))) == [None]
    yield from _stored(store, plan.now, is_whole and bool(answers["positions"]))
    plan.pause()
    yield "Asking again ..."
    second = _Recorder(source, plan.clock)
    yield from _again(first, second, plan.now)
    yield from _ranges(answers["events"], first, second, plan)


def _attributes(source: Source) -> Iterator[Finding]:
    for name, of in _ATTRIBUTES.items():
        values = yield from _ask(name, lambda name=name: [getattr(source, name)])  # type: ignore[misc]
        yield from (error(f"{name}: {bad.of(None)}") for value in values or () for bad in validate(value, of))


class _Recorder(OpenSource):
    """A source that records its answers, and the seconds that each took, by method and instants."""

    def __init__(self, source: Source, clock: Callable[[], float]) -> None:
        super().__init__(source)
        self._clock = clock
        self.answers: dict[tuple[str, tuple[datetime, ...]], Sequence[Any]] = {}
        self._seconds: dict[tuple[str, tuple[datetime, ...]], float] = {}

    def answer(self, name: str, method: Callable[..., Any], *instants: datetime) -> Any:
        return super().answer(name, partial(self._record, name, method), *instants)

    def positions(self, at: datetime) -> Iterator[Position]:
        # Positions of several instants may not fit into memory.
        for key in [key for key in self.answers if key[0] == "positions" and key[1] != (at,)]:
            self.answers[key] = ()
        return iter(self.answer("positions", self._source.positions, at))

    def _record(self, name: str, method: Callable[..., Any], *instants: datetime) -> Any:
        started = self._clock()
        answer = read_whole(method(*instants))
        if (name, instants) not in self.answers:
            self.answers[name, instants] = answer if isinstance(answer, list) else [answer]
            self._seconds[name, instants] = self._clock() - started
        return answer

    def records(self, name: str, *instants: datetime) -> list[Any]:
        """The records of an answer that can be stored."""
        answer = self.answers.get((name, instants), ())
        return [record for record in answer if not any(validate(record, _RECORDS[name]))]

    def lines(self, at: datetime) -> Iterator[str]:
        """A line for each answer at an instant."""
        for (name, instants), seconds in self._seconds.items():
            if at <= instants[-1] <= at + _SECOND:
                yield f"  {name:<14} {len(self.answers[name, instants]):>9,} in {seconds:.2f} s"


class _Losses(Rejections):
    """Collects what jobs reject instead of logging it, and the newest failure of each job with its reason."""

    def __init__(self) -> None:
        super().__init__()
        self.failed: dict[str, tuple[datetime, str]] = {}
        self._rejected: dict[Any, tuple[int, str]] = {}

    def __exit__(self, *_: object) -> None:
        self._rejected = {**self._counts, **self._rejected}

    def findings(self, now: datetime, past: Callable[[str], Finding]) -> Iterator[Finding]:
        """The findings about losses, one for each cause. `past` makes those about backfills."""
        for at, words in dict.fromkeys(self.failed.values()):
            jobs = list_in_words(job for job, failure in self.failed.items() if failure == (at, words))
            if at == now:
                yield error(f"{jobs}: no snapshot as of {format_instant(at)}: {words}.")
            else:
                yield past(f"{jobs}: no backfill up to {format_instant(at)}: {words}.")
        for (part, _), (count, example) in self._rejected.items():
            also = f" {count:,} records were rejected for this cause." if count > 1 else ""
            yield error(f"{part}: {example} It is rejected.{also}")


def _run_jobs(recorder: _Recorder, store: Store, at: datetime, plan: Plan, losses: _Losses) -> Iterator[Finding]:
    """Take all snapshots of an instant. Yields the slow ones."""
    for job in JOBS.values():
        started = plan.clock()
        try:
            take_snapshot(job, recorder, store, at, rejections=losses)
        except StoreUnavailable:
            raise
        # Any exception, because the source may come from another package.
        except Exception as fault:
            losses.failed[job.name] = at, _words(fault)
        # The first snapshot of loans asks for all events.
        limit = plan.settings.source_timeout if job.name == "loans" else job.interval(plan.settings)
        if (seconds := plan.clock() - started) > limit / 2:
            level = error if seconds > limit else warning
            yield level(f"{job.name}: a snapshot took {seconds:.0f} s; the limit is {limit} s.")


def _words(fault: Exception) -> str:
    words = str(fault).rstrip(". ")
    hint = "Raise SourceError if the call can be retried"
    return words if isinstance(fault, SourceError) else f"{type(fault).__name__}: {words}. {hint}"


def _ask(name: str, call: Callable[[], Any]) -> Generator[Finding, None, Any]:
    """An answer of a source. Yields a finding and returns None if the call fails."""
    try:
        return call()
    except StoreUnavailable:
        raise
    except Exception as fault:
        yield error(f"{name}: {_words(fault)}.")
        return None


def _identities(answers: Mapping[str, Sequence[Any]]) -> Iterator[Finding]:
    """Finds repeated ids, ids of unknown assets, and invalid addresses."""
    for part, hint in _IDENTITIES.items():
        names = Counter(name_record(each) if part == "events" else name_record(each).lower() for each in answers[part])
        if repeated := [name for name, count in names.items() if count > 1]:
            yield error(f"{part}: more than once: {list_in_words(repeated)}. {hint}")
    known = {id_key(asset.id) for asset in answers["assets"]} | {NO_CONFIG.ptoken}
    for part in ("prices", "markets", "events", "ptoken"):
        ids = [record.asset_id for record in answers[part]]
        if undefined := [asset_id for asset_id in ids if id_key(asset_id) not in known]:
            yield warning(f"{part}: not among the assets: {list_in_words(undefined)}. Amounts stay in denom units.")
    for part in ("events", "positions", "arrangements", "swaps"):
        addresses = dict.fromkeys(record.address for record in answers[part])
        if bad := [each for each in addresses if not (each.startswith(STAND_IN) or _is_address(each))]:
            yield warning(
                f"{part}: invalid addresses, which nobody can request: {list_in_words(bad)}. They must be bech32 with "
                "a valid checksum, or 0x and 40 hex digits."
            )


def _is_address(address: str) -> bool:
    try:
        parse_address(address)
    except ValueError:
        return False
    return True


def _prices(quotes: Mapping[datetime, Sequence[Price]], now: datetime) -> Iterator[Finding]:
    """Finds impossible times of prices: later than requested, two values at one time, or present values in the past."""
    for at, prices in quotes.items():
        if late := [price for price in prices if price.observed_at > at + _CLOCKS]:
            yield error(
                f"prices: the answer for {format_instant(at)} has later prices, of "
                f"{format_instant(late[0].observed_at)}: {list_in_words(price.asset_id for price in late)}. Answer "
                "with the prices of that time."
            )
            break
    usd: dict[tuple[str, datetime], set[Any]] = defaultdict(set)
    for price in (price for prices in quotes.values() for price in prices):
        usd[price.asset_id, price.observed_at].add(price.usd)
    if repeated := [asset_id for (asset_id, _), values in usd.items() if len(values) > 1]:
        yield error(f"prices: several at one observed_at: {list_in_words(repeated)}. State when each was observed.")
    # The price of a stablecoin may stay at 1.
    newest = {price.asset_id: price for price in quotes[now] if price.usd != ONE}
    old = [price for at, prices in quotes.items() for price in prices if at < now and price.asset_id in newest]
    moved = [price.asset_id for price in old if price.observed_at < newest[price.asset_id].observed_at]
    if moved and all(price.usd == newest[price.asset_id].usd for price in old):
        yield warning(
            f"prices: past prices equal present ones, with another observed_at: {list_in_words(moved)}. Answer with "
            "the prices of that time, and with the time at which each was observed."
        )


def _stored(store: Store, now: datetime, is_whole: bool) -> Iterator[Finding]:
    """Finds suspicious data in the scratch store. Positions are checked against markets only if they are `is_whole`."""
    queries = ["inspect_markets", "inspect_events", *(["inspect_positions"] if is_whole else [])]
    names: dict[tuple[str, str], list[str]] = defaultdict(list)
    for frame in (store.query("inspect_prices", now=unix_second(now)), *map(store.query, queries)):
        for level, words, name in frame.iter_rows():
            names[level, words].append(name)
    for (level, words), found in names.items():
        yield Finding(Level(level), words.replace("…", list_in_words(found)))
    marked = store.query("list_anomalies", start=unix_second(now - _AGO[0]), end=unix_second(now) + 1)
    suspicious = [
        f"{what} of {history} {symbol or asset_id} at {format_instant(from_unix(at))}: {value:g}"
        + ("" if before is None else f" after {before:g}")
        for what, history, symbol, asset_id, at, value, before in marked.iter_rows()
    ]
    if suspicious:
        yield warning(f"suspicious: {list_in_words(suspicious)}. Are these values right?")


def _again(first: _Recorder, second: _Recorder, now: datetime) -> Iterator[Finding]:
    """Finds answers that changed, oldest first, one for each method."""
    reported = set[str]()
    for (name, instants), before in sorted(first.answers.items(), key=lambda answer: answer[0][1][-1]):
        # Only the newest positions are kept.
        if name in reported or name in ("events", "complete_until") or not (before or name != "positions"):
            continue
        yield from _ask(name, partial(getattr(second, name), *instants))
        after = second.answers.get((name, instants))
        if after is not None and (what := _difference(before, after)):
            reported.add(name)
            last = format_instant(instants[-1])
            words = f"{name}: asked again as of {last}, {what}. Answer as of `at`, not as of the call"
            if instants[-1] < now:
                yield error(f"{words}: the past must not change.")
            else:
                yield warning(f"{words}: otherwise a snapshot that is taken again differs.")


def _ranges(every: Sequence[Event], first: _Recorder, second: _Recorder, plan: Plan) -> Iterator[Finding]:
    """Finds a range whose events differ from all events in that range, apart from late events. Asks for the ranges of
    the jobs, and for two ranges with an event at their edge."""
    now = plan.now
    stated = yield from _ask("complete_until", partial(second.complete_until, now))
    complete = stated or now - timedelta(seconds=plan.settings.events_lateness)
    known = {event.id for event in every}
    newest = max((event.at for event in every if not event.at.microsecond and event.at < now), default=now)
    ranges = [instants for name, instants in first.answers if name == "events"]
    ranges += pairwise((newest - _SECOND, newest, newest + _SECOND))
    for start, end in dict.fromkeys(ranges if every else ()):
        if (yield from _ask("events", partial(second.events, start, end))) is None:
            return
        answer = second.records("events", start, end)
        in_time = [event for event in answer if event.at <= complete or event.id in known]
        if what := _difference([event for event in every if start <= event.at < end], in_time):
            yield error(
                f"events: from {format_instant(start)} to before {format_instant(end)}, they differ from all events in "
                f"this range: {what}. Each event belongs to one range, [start, end). An event that is missing when its "
                "range is asked for again is removed from the store."
            )
            return


def _difference(first: Sequence[Any], second: Sequence[Any]) -> str:
    """How two answers differ, in words; empty if they have the same records, in any order."""
    earlier, later = ({name_record(record): record for record in records} for records in (first, second))
    for name in [*earlier, *later]:
        if (name in earlier) != (name in later):
            return f"{name} {'was there, then missing' if name in earlier else 'was missing, then there'}"
        for each in fields(earlier[name]) if is_dataclass(earlier[name]) else ():
            was, now = (getattr(answer[name], each.name) for answer in (earlier, later))
            # NaN does not equal itself.
            if was != now and repr(was) != repr(now):
                return f"{each.name} of {name} was {was}, then {now}"
    return ""
