"""Values of one kind of history: from chunks in memory where those tell them, else read from the store."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from analytics_service.series.chunk import HOUR, Chunk, Place, Spot, load_chunk, span_of, spots
from analytics_service.series.direct import read_since, read_values
from analytics_service.series.encode import endings
from analytics_service.series.memory import Memory
from analytics_service.series.query import Query
from analytics_service.series.recall import is_settled, recall
from analytics_service.series.rows import History, Series, read_series
from analytics_service.store.connection import Store
from analytics_service.store.heads import Heads
from analytics_service.store.ledger import Head, oldest_change


@dataclass(frozen=True, slots=True)
class State:
    """A history as of a head: its series, by id in the order of ids."""

    head: Head
    series: Mapping[str, Series]


class Archive:
    """A history as of one head after the other; what is in memory is always of the newest one that was asked for."""

    def __init__(self, store: Store, heads: Heads, history: History, memory: Memory) -> None:
        self._store = store
        self._heads = heads
        self._history = history
        self._memory = memory
        self._lock = threading.Lock()
        self._state: State | None = None

    @property
    def family(self) -> str:
        """The ledger's family of the history."""
        return self._history.family

    def at(self, head: Head) -> State:
        """The history as of a head; what is new since the one before is read once. Superseded for an older head."""
        state = self._state
        if state is not None and state.head == head:
            return state
        return self._heads.steadily_at(head, lambda: self._advance(head))

    def endings(self, state: State, series: Mapping[str, Series], query: Query) -> pl.Series:
        """Values of some series on a page, as points end with them, one series after the other.

        Cost: that of the page's buckets and series. From memory no query, or a small one where the page ends within an
        hour; else one, and a second one when a series carries a value over a long gap into the page. Superseded when
        the state is not that of the newest head.
        """
        values = self._remembered(state, series, query)
        if values is not None:
            return values
        until = query.until(state.head.last_observed_at)
        whole = len(series) == len(state.series)

        def read() -> pl.DataFrame:
            return read_values(self._store, self._history, series, query.begins, until, carry=query.carry, whole=whole)

        return endings(self._heads.steadily_at(state.head, read)["value"])

    def _remembered(self, state: State, series: Mapping[str, Series], query: Query) -> pl.Series | None:
        begins, ids, until = query.begins, list(series), query.until(state.head.last_observed_at)
        found = self._chunks(state, series, query, until)
        if found is None:
            return None
        chunks, places = found
        buckets = sum(len(spot.hours) for spot in places)
        cut = query.end < state.head.last_observed_at and bool(buckets) and until < begins[buckets]
        if not cut or is_settled(chunks, places, ids, until):
            return recall(chunks, places, ids, begins, carry=query.carry)
        return self._with_last_hour(state, series, query, buckets)

    def _with_last_hour(
        self, state: State, series: Mapping[str, Series], query: Query, buckets: int
    ) -> pl.Series | None:
        """The same for a page that ends within an hour in which something was observed later: chunks tell the values
        as of that hour's begin, and the store what was observed from there on."""
        begins, until = query.begins, query.end + 1
        hour = until - (until - begins[buckets]) % HOUR
        found = self._chunks(state, series, query, until, known=hour) if begins[buckets - 1] <= hour else None
        if found is None:
            return None
        # The first hour of zones a part of an hour off begins before 1970; no observation does.
        later = self._heads.steadily_at(
            state.head, lambda: read_since(self._store, self._history, series, max(hour, 0), until)
        )
        values = recall(*found, list(series), begins, carry=query.carry)
        last = range(buckets - 1, len(values), len(begins) - 1)
        return values.scatter(last, later.fill_null(values[last]))

    def _chunks(
        self, state: State, series: Mapping[str, Series], query: Query, until: int, known: int | None = None
    ) -> tuple[Mapping[Place, Chunk], list[Spot]] | None:
        """The chunks that the page needs, and where in them; None when not all are there."""
        places = spots(query.begins, until, span_of(len(state.series)), known)
        if places is None:
            return None
        first = min((one.first_month for one in series.values()), default=until)
        # Hours ascend, so a place's last spot says the last one that is needed.
        needed = {spot.place: spot.hours[-1] for spot in places if spot.place.end > first}
        chunks = self._memory.find(self._history, state.head, needed)
        if chunks is None or len(chunks) < len(needed):
            missing = [place for place in needed if place not in (chunks or ())]
            self._memory.want(self._history, missing, self._load, urgent=True)
            return None
        return chunks, places

    def _advance(self, head: Head) -> State:
        with self._lock:
            old = self._state
            if old is not None and old.head == head:
                return old
            state = State(head, read_series(self._store, self._history, head.last_observed_at))
            closed = min(old.head.last_observed_at, oldest_change(self._store, old.head, head)) if old else 0
            span = span_of(len(state.series))
            self._memory.move(
                self._history, head, lambda place: place.hours_before(closed) if place.span == span else 0
            )
            self._state = state
        if old is None:
            self._memory.want(self._history, _all_places(state), self._load, urgent=False)
        return state

    def _load(self, place: Place) -> None:
        """Load a chunk of the newest state into memory."""
        state = self.at(self._heads.get(self.family))
        until = state.head.last_observed_at + 1
        begun = (self._memory.find(self._history, state.head, {place: 0}) or {}).get(place)
        chunk = self._heads.steadily_at(
            state.head, lambda: load_chunk(self._store, self._history, state.series, place, until, begun)
        )
        self._memory.put(self._history, state.head, place, chunk)


def _all_places(state: State) -> list[Place]:
    """The chunks of whole hours that a history has, the newest first."""
    months, span = [one.first_month for one in state.series.values()], span_of(len(state.series))
    oldest, newest = (second // (span * HOUR) for second in (min(months, default=0), state.head.last_observed_at))
    return [Place(0, number, span) for number in range(newest, oldest - 1, -1)] if months else []
