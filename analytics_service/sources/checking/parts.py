"""The parts of a source: how each is asked for, and the store's own rules of what it can hold."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

import polars as pl

from analytics_service.errors import OutOfRange
from analytics_service.market.assets import Asset
from analytics_service.market.events import Event
from analytics_service.market.instants import EPOCH
from analytics_service.market.kinds import type_of
from analytics_service.market.markets import NO_CONFIG, GlobalConfig, Market
from analytics_service.market.positions import Position, SwapContract
from analytics_service.market.prices import Price
from analytics_service.market.ptoken import Arrangement, Ptoken, no_ptoken
from analytics_service.market.rates import Rates
from analytics_service.sources.base import Source
from analytics_service.sources.checking.findings import Finding, error, sentence
from analytics_service.sources.checking.misfits import Misfit, misfits
from analytics_service.store.assets import asset_frame
from analytics_service.store.events import account_event_frame
from analytics_service.store.loans import is_lending, lending_frame
from analytics_service.store.markets import market_rows
from analytics_service.store.observations import observations_of, price_frame
from analytics_service.store.positions import item_frame
from analytics_service.store.ptoken import ptoken_rows
from analytics_service.store.rates import values_of
from analytics_service.store.snapshot_table import SnapshotRows
from analytics_service.store.swaps import route_rows

# A record's field that identifies it, in the order in which they are looked for.
_NAMING = ("id", "asset_id", "address", "index")
# Records of a part whose values are looked at one by one.
_LOOKED_AT = 10_000
Records = Sequence[Any]


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a source, whose records are of the type `of`. `job` names the job that asks for it, `encode` makes
    batches of the records for the store, and `without` says what is not shown when it is empty."""

    name: str
    of: type
    job: str
    ask: Callable[[Source, datetime], Iterable[Any]]
    encode: Callable[[Records], object]
    without: str = ""
    has_past: bool = True


def _tables(rows: SnapshotRows) -> list[pl.DataFrame]:
    return [table.frame(values) for table, values in rows.items()]


def _encode_markets(markets: Records) -> None:
    observations_of(values_of(Rates.of(markets)), EPOCH)
    _tables(market_rows(markets, NO_CONFIG, {}))


def _encode_events(events: Records) -> None:
    account_event_frame(events)
    lending_frame(filter(is_lending, events))


PRICES = Part("prices", Price, "prices", lambda source, at: source.prices(at), price_frame)
EVENTS = Part(
    "events",
    Event,
    "loans",
    lambda source, at: source.events(EPOCH, at),
    _encode_events,
    "loans originated, liquidations and the histories of addresses are empty",
)
PARTS = (
    Part("assets", Asset, "prices", lambda source, at: source.assets(at), asset_frame),
    PRICES,
    Part(
        "markets",
        Market,
        "markets",
        lambda source, at: source.markets(at),
        _encode_markets,
        "rates, markets and the total value locked are empty",
    ),
    Part(
        "config",
        GlobalConfig,
        "markets",
        lambda source, at: [source.config(at)],
        lambda configs: [_tables(market_rows((), config, {})) for config in configs],
    ),
    EVENTS,
    Part(
        "ptoken",
        Ptoken,
        "ptoken",
        lambda source, at: [source.ptoken(at)],
        lambda ptokens: [_tables(ptoken_rows(ptoken, ())) for ptoken in ptokens],
    ),
    Part(
        "arrangements",
        Arrangement,
        "ptoken",
        lambda source, at: source.arrangements(at),
        lambda arrangements: _tables(ptoken_rows(no_ptoken(EPOCH), arrangements)),
        "there are no unlocks",
    ),
    Part(
        "positions",
        Position,
        "positions",
        lambda source, at: source.positions(at),
        item_frame,
        "every address is without accounts, deposits and wallet, and there is no risk",
        has_past=False,
    ),
    Part(
        "swaps",
        SwapContract,
        "routes",
        lambda source, at: source.swaps(at),
        lambda contracts: _tables(route_rows(contracts)),
        "there are no swap routes",
    ),
)


def storable(part: Part, records: Records) -> Finding | None:
    """Why the store cannot hold the records of a part, if so: then the part's snapshot is lost."""
    for record in records[:_LOOKED_AT]:
        for misfit in misfits(record, part.of):
            subject = f"{misfit.path} of {named(record)}" if misfit.path else "a record"
            return error(f"{part.name}: {subject} is {_mistyped(misfit)}")
    try:
        part.encode(records)
    except OutOfRange as fault:
        return error(f"{part.name}: {fault} The whole snapshot is lost.")
    # Any other error of a record that is not what the domain declares.
    except Exception as fault:
        return error(
            f"{part.name}: not records as sources/base.py declares them: {type(fault).__name__}: {sentence(fault)} "
            "The whole snapshot is lost."
        )
    return None


def _mistyped(misfit: Misfit) -> str:
    value = misfit.value
    if isinstance(value, float):
        return (
            f"the float {value!r}. Floats are not exact. Make amounts int and all else Decimal, from text and not from "
            "floats."
        )
    if isinstance(value, datetime) and value.utcoffset() is None:
        return f"{value}, without a time zone. Use UTC."
    hint = " Amounts are int, in denom units." if isinstance(value, Decimal) else ""
    return f"{type_of(value)}; it must be {misfit.allowed}.{hint}"


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
    """Every value within a record, with its path, such as config.liquidation_ltv."""
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
