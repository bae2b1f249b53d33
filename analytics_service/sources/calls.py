"""Calls sources: with a time limit, with canonical asset ids, and with the instant in errors."""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from copy import copy
from dataclasses import fields, is_dataclass, replace
from datetime import datetime
from functools import cache, partial
from itertools import chain, islice
from operator import attrgetter
from typing import Any, TypeVar

from analytics_service.concurrency import in_thread
from analytics_service.errors import SourceError
from analytics_service.market.assets import HEX, Asset, AssetIds
from analytics_service.market.instants import format_instant
from analytics_service.market.kinds import AssetId, ColumnType, kinds_of
from analytics_service.market.positions import Position
from analytics_service.sources.base import Source

log = logging.getLogger(__name__)

_T = TypeVar("_T")
# When this many calls hang, the source is no longer called: each call occupies a thread, which nothing can end.
_MAX_HANGING = 8
# Positions of a call: a source may yield them one by one.
_POSITIONS_AT_ONCE = 1_000
# Seconds for closing a source, and for calls once the process is about to end.
_LAST_SECONDS = 5.0


class Calls:
    """Calls into a source, each in a thread of its own, where a call that exceeds the time limit is abandoned. For a
    source that cannot hang, `seconds` is None, and calls are direct."""

    def __init__(self, source: str, seconds: float | None) -> None:
        self._source = source
        self._seconds = seconds
        self._hanging: set[Future[Any]] = set()
        self._hurry: Future[None] = Future()

    def __call__(self, subject: str, call: Callable[[], _T], limit: float | None = None) -> _T:
        """The result of the call, or its error. SourceError if it takes too long, or if too many other calls hang."""
        if self._seconds is None:
            return call()
        seconds = limit or self._seconds
        if len(self._hanging) >= _MAX_HANGING:
            raise SourceError(
                f"{self._source} is not asked for {subject}: {len(self._hanging)} calls are still waiting for it. "
                "If they never end, restart the process."
            )
        future = in_thread(call)
        # `result` with a time-out would raise TimeoutError, which could also be the source's own.
        either: list[Future[Any]] = [future, self._hurry]
        wait(either, seconds, FIRST_COMPLETED)
        if self._hurry.done():
            seconds = min(seconds, _LAST_SECONDS)
            wait([future], seconds)
        if future.done():
            return future.result()
        self._hanging.add(future)
        future.add_done_callback(self._hanging.discard)
        raise SourceError(f"{self._source} has taken more than {seconds:g} s for {subject}.")

    def hurry(self) -> None:
        """From now on calls, including calls under way, may take only some seconds."""
        if not self._hurry.done():
            self._hurry.set_result(None)


class OpenSource(Source):
    """Wraps a source for its callers. Answers are lists and records, complete within the time limit; positions come in
    batches, with a time limit for each. All other methods of Source are added below."""

    def __init__(self, source: Source, calls: Calls | None = None) -> None:
        self.may_hang, self.has_markets, self.at_ends = source.may_hang, source.has_markets, source.at_ends
        self._source = source
        self._calls = calls or Calls(source.spec, None)
        self.ids: _CanonicalIds | None = None

    @property
    def spec(self) -> str:
        return self._source.spec

    def hurry(self) -> None:
        self._calls.hurry()
        self._source.hurry()

    def close(self) -> None:
        """Close the source. A source that does not close in time is abandoned."""
        try:
            self._calls("closing", self._source.close, _LAST_SECONDS)
        except SourceError as error:
            log.warning("%s", error)

    def positions(self, at: datetime) -> Iterator[Position]:
        def listed() -> Iterator[Position]:
            yield from self._source.positions(at)

        positions = listed()
        while batch := self.answer("positions", lambda _: islice(positions, _POSITIONS_AT_ONCE), at):
            yield from batch

    def answer(self, name: str, method: Callable[..., Any], *instants: datetime) -> Any:
        """The method's answer; an iterator is read to its end."""
        subject = f"{name} {'from ' if instants[1:] else 'as of '}{' to '.join(map(format_instant, instants))}"

        try:
            value = self._calls(subject, lambda: read_whole(method(*instants)))
        except SourceError as error:
            if subject in str(error):
                raise
            raise SourceError(f"{error} It was asked for {subject}.") from error
        except Exception as error:
            error.add_note(f"{self.spec} was asked for {subject}.")
            raise
        return value if self.ids is None or _are_canonical([value], self.ids) else _with_ids(value, self.ids)

    def attribute(self, name: str) -> Any:
        """A property, which the source may have to look up."""
        return self._calls(name, lambda: getattr(self._source, name))


def read_whole(answer: Any) -> Any:
    """The records of an answer as a list; any other answer as it is."""
    has_records = isinstance(answer, Iterable) and not isinstance(answer, (str, Mapping))
    return list(answer) if has_records else answer


def _asking(name: str) -> Callable[..., Any]:
    return lambda opened, *instants: opened.answer(name, getattr(opened._source, name), *instants)


# Adds the methods of a source that the class does not define.
for _name, _member in vars(Source).items():
    if _name.startswith("_") or _name in vars(OpenSource):
        continue
    if isinstance(_member, property):
        setattr(OpenSource, _name, property(partial(OpenSource.attribute, name=_name)))
    elif callable(_member):
        setattr(OpenSource, _name, _asking(_name))


def with_canonical_ids(source: Source, stored: Callable[[], Collection[str]], at: datetime) -> Source:
    """The source with canonical ids in all answers (rule 3.4, canonical ids): the store's spelling, or for a new asset
    the spelling of the source's definitions at an instant. `stored` reads the ids of the store."""
    canonical = copy(source) if isinstance(source, OpenSource) else OpenSource(source)
    canonical.ids = _CanonicalIds(source, stored, at)
    return canonical


class _CanonicalIds(dict[str, str]):
    """The canonical form of each id. Asks store and source only when the first hexadecimal address comes."""

    def __init__(self, source: Source, stored: Callable[[], Collection[str]], at: datetime) -> None:
        self._known: AssetIds | None = None
        self._source, self._stored, self._at = source, stored, at

    def __missing__(self, asset_id: str) -> str:
        # A source of another package may answer with anything.
        if not str(asset_id).startswith(HEX):
            return self.setdefault(asset_id, asset_id)
        if self._known is None:
            known = AssetIds(self._stored())
            for asset in self._source.assets(self._at):
                known.find(asset.id) or known.add(asset.id)
            self._known = known
        return self.setdefault(asset_id, self._known.find(asset_id) or self._known.add(asset_id))


def _are_canonical(values: Sequence[Any], ids: _CanonicalIds) -> bool:
    """Whether `_with_ids` would change none of the values. It checks each distinct id once: positions have a million
    ids of a few assets."""
    kinds: Iterable[Any] = dict.fromkeys(map(type, values))
    for kind in kinds:
        alike: Sequence[Any] = [value for value in values if type(value) is kind]
        if parts := _id_fields(kind):
            own, inner = parts
            named = chain.from_iterable(map(attrgetter(name), alike) for name in own)
            if any(ids[asset_id] != asset_id for asset_id in dict.fromkeys(filter(None, named))):
                return False
            if not all(_are_canonical([*map(attrgetter(name), alike)], ids) for name in inner):
                return False
        elif issubclass(kind, Mapping):
            if any(ids[key] != key for key in chain.from_iterable(alike)):
                return False
        elif issubclass(kind, Collection):
            if not issubclass(kind, str) and not _are_canonical([*chain.from_iterable(alike)], ids):
                return False
        elif issubclass(kind, Iterable):
            # An iterator can be read only once, and becomes a tuple.
            return False
    return True


def _with_ids(value: Any, ids: _CanonicalIds) -> Any:
    """A record, or a collection of records, with canonical ids in its fields and in the keys of its mappings."""
    kind: Any = type(value)
    if parts := _id_fields(kind):
        own, inner = parts
        changed: dict[str, Any] = {}
        for name in own:
            held = getattr(value, name)
            if held and (canonical := ids[held]) != held:
                changed |= {"group_key": canonical.partition(";")[2]} if name == "id" else {name: canonical}
        for name in inner:
            held = getattr(value, name)
            if held and (canonical := _with_ids(held, ids)) != held:
                changed[name] = canonical
        return replace(value, **changed) if changed else value
    if isinstance(value, Mapping):
        return {ids[key]: item for key, item in value.items()}
    if not isinstance(value, Iterable) or isinstance(value, str):
        return value
    items = [_with_ids(item, ids) for item in value]
    return items if isinstance(value, list) else tuple(items)


@cache
def _id_fields(kind: Any) -> tuple[list[str], list[str]] | None:
    """The names of a record's fields with asset ids, and of fields that may contain records or mappings."""
    if not is_dataclass(kind):
        return None
    record: Any = kind
    kinds = kinds_of(record)
    own = [name for name, declared in kinds.items() if isinstance(declared, AssetId)]
    own += ["id"] if record is Asset else []
    return own, [field.name for field in fields(record) if not isinstance(kinds.get(field.name), ColumnType)]
