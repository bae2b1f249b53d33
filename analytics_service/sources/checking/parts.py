"""The parts of a source: how each is asked for, and whether its records are what the domain declares."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from typing import Any

from analytics_service.market.assets import Asset
from analytics_service.market.events import Event
from analytics_service.market.instants import EPOCH
from analytics_service.market.markets import GlobalConfig, Market
from analytics_service.market.positions import Position, SwapContract
from analytics_service.market.prices import Price
from analytics_service.market.ptoken import Arrangement, Ptoken
from analytics_service.sources.base import Source
from analytics_service.sources.checking.findings import Finding, error
from analytics_service.sources.checking.misfits import misfits

# A record's field that identifies it, in the order in which they are looked for.
_NAMING = ("id", "asset_id", "address", "index")
Records = Sequence[Any]


@dataclass(frozen=True, slots=True)
class SourcePart:
    """A part of a source, whose records are of the type `of`. `job` names the job that asks for it, and `without` says
    what is not shown when it is empty."""

    name: str
    of: type
    job: str
    ask: Callable[[Source, datetime], Iterable[Any]]
    without: str = ""
    has_past: bool = True


PRICES = SourcePart("prices", Price, "prices", lambda source, at: source.prices(at))
EVENTS = SourcePart(
    "events",
    Event,
    "loans",
    lambda source, at: source.events(EPOCH, at),
    "loans originated, liquidations and the histories of addresses are empty",
)
PARTS = (
    SourcePart("assets", Asset, "prices", lambda source, at: source.assets(at)),
    PRICES,
    SourcePart(
        "markets",
        Market,
        "markets",
        lambda source, at: source.markets(at),
        "rates, markets and the total value locked are empty",
    ),
    SourcePart("config", GlobalConfig, "markets", lambda source, at: [source.config(at)]),
    EVENTS,
    SourcePart("ptoken", Ptoken, "ptoken", lambda source, at: [source.ptoken(at)]),
    SourcePart(
        "arrangements",
        Arrangement,
        "ptoken",
        lambda source, at: source.arrangements(at),
        "there are no unlocks",
    ),
    SourcePart(
        "positions",
        Position,
        "positions",
        lambda source, at: source.positions(at),
        "every address is without accounts, deposits and wallet, and there is no risk",
        has_past=False,
    ),
    SourcePart("swaps", SwapContract, "routes", lambda source, at: source.swaps(at), "there are no swap routes"),
)


def misfit(part: SourcePart, records: Records) -> Finding | None:
    """What is wrong with the type or range of a record, if anything is: then the part's snapshot is lost."""
    for record in records:
        for path, problem in misfits(record, part.of):
            subject = f"{path} of {named(record)}" if path else "a record"
            return error(f"{part.name}: {subject}{problem}")
    return None


def named(record: Any) -> str:
    """A record, by the field that identifies it."""
    fields = ((name, getattr(record, name, None)) for name in _NAMING)
    return next((str(value) for name, value in fields if value is not None), type(record).__name__)


def difference(first: Records, second: Records) -> str:
    """How two answers differ, in words; empty if they have the same records, in any order."""
    earlier, later = _by_name(first), _by_name(second)
    for name in [*earlier, *later]:
        if name not in later:
            return f"{name} was there, and then was not"
        if name not in earlier:
            return f"{name} was not there, and then was"
        was, now = (dict(_values(answer[name])) for answer in (earlier, later))
        for field in [*was, *now]:
            if was.get(field) != now.get(field):
                return f"{field} of {name} was {was.get(field)}, and then {now.get(field)}"
    return ""


def _by_name(records: Records) -> dict[str, Any]:
    """Records by name; of several with the same name, the second is `name (2)`, and so on."""
    by_name: dict[str, Any] = {}
    for record in sorted(records, key=repr):
        name, number = named(record), 1
        while (key := name if number == 1 else f"{name} ({number})") in by_name:
            number += 1
        by_name[key] = record
    return by_name


def _values(record: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every value within a record, with its path, such as lend.apr."""
    if is_dataclass(record):
        inner: Iterable[tuple[str, Any]] = ((field.name, getattr(record, field.name)) for field in fields(record))
    elif isinstance(record, Mapping):
        inner = ((str(key), value) for key, value in record.items())
    elif isinstance(record, (tuple, list)):
        inner = ((str(index), value) for index, value in enumerate(record))
    else:
        yield path, record
        return
    for name, value in inner:
        yield from _values(value, f"{path}.{name}" if path else name)
