"""Values of one history: from memory where it has them, else from the store.

In memory are blocks of closed hours, and a tail: every observation since shortly before the newest closed hour. A new
snapshot extends the tail, and the hours that it closes are appended to the blocks. Blocks that a rewrite may have
changed are read again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import polars as pl

from analytics_service.errors import Superseded
from analytics_service.history.at_hand import AtHand
from analytics_service.history.blocks import Block, in_one, make_block
from analytics_service.history.buckets import Buckets
from analytics_service.history.candle_blocks import slot_of_hour
from analytics_service.history.candles import SETS, Aggregate, needed, no_candles, summarized
from analytics_service.history.formats.base import Cut
from analytics_service.history.last_instants import LastInstants
from analytics_service.history.memory import Key, Loader, Need
from analytics_service.history.observations import Observations
from analytics_service.history.rows import Rows
from analytics_service.history.sample import no_values
from analytics_service.history.slots import PHASES, Candles, Kind, Slot, closed
from analytics_service.history.states import SeriesInfo, State, rows_per_hour
from analytics_service.history.text_blocks import Wording, texts_of
from analytics_service.history.text_file import TextFile
from analytics_service.history.texts_at_hand import TextsAtHand
from analytics_service.market.instants import HOUR
from analytics_service.store.connection import Store
from analytics_service.store.histories import History
from analytics_service.store.ledger import Head, oldest_change, require_unchanged
from analytics_service.store.turns import OneAtATime

# Closed hours are appended to blocks one by one; after a longer pause blocks are read again.
_MOST_APPENDED = 48
# Cells of a block that are read at once. Until they are in the block, they take many times as much memory.
_CELLS_AT_ONCE = 512


class HistoryReader:
    """A history in the states that its heads name. All histories share a loader with its memory, a loader of texts, and
    the file that these are in."""

    def __init__(self, store: Store, history: History, loader: Loader, texts: Loader, file: TextFile) -> None:
        self.history = history
        self._store = store
        self._rows = Rows(store, history)
        self._memory = loader.memory
        self._loader = loader
        # Told when a page is read from the store, and asked for its headers.
        self._last_instants = LastInstants()
        self._at_hand = AtHand(loader.memory, partial(self._request, need=Need.URGENT))
        # A block of texts is made of more hours than the page that asks for it. If loading these pushed out blocks that
        # pages use, the next page would have those loaded again, and so on without end.
        self._at_hand_for_texts = AtHand(loader.memory, partial(self._request, need=Need.USEFUL))
        self._texts_at_hand = TextsAtHand(texts, file, self._texts_of_slot, self._made)
        self._advancing = OneAtATime()
        # The newest state, and the one before: a request may still show that one.
        self._states: tuple[State, ...] = ()

    def at(self, head: Head) -> State:
        """The state of a head. Superseded when a newer one has been asked for in between."""
        for state in self._states:
            if state.head == head:
                return state
        if self._states and self._states[0].head.runs > head.runs:
            raise Superseded(f"{head.family} has a newer state.")
        return self._advance(head)

    def points(
        self, state: State, ids: Sequence[str], buckets: Buckets, agg: Aggregate, *, numbers: bool = False
    ) -> pl.DataFrame:
        """The columns of the points of some series, bucket by bucket: `v`, or `o`, `h`, `l`, `c` and `n`. Values are
        plain decimal text, or null. With `numbers` they may be numbers instead, where that is quicker than reading the
        texts.

        Cost: that of the buckets and series; from memory without a query. Superseded when the history was rewritten
        since the state.
        """
        if not state.series:
            # The single series of a history without observations is asked for all the same.
            values = no_values(len(ids) * buckets.count)
            if agg is Aggregate.LAST:
                return values.to_frame("v")
            return summarized(agg, no_candles(needed(agg), len(values)), values, carry=buckets.carry)
        found = self._at_hand.points(state, ids, buckets, agg, numbers=numbers)
        if found is not None:
            return found
        series, whole = {one: state.series[one] for one in ids}, len(ids) == len(state.series)
        if agg is Aggregate.LAST:
            last = self._rows.read_values(series, buckets, whole=whole)
            found = last["value"].to_frame("v")
        else:
            carried = replace(buckets, carry=True)
            candles, last = self._rows.read_candles(series, carried, whole=whole)
            found = summarized(agg, candles, last["value"], carry=buckets.carry)
        self._accept(state, buckets, last, whole=whole)
        return found

    def texts(self, state: State, ids: Sequence[str], buckets: Buckets, wording: Wording) -> list[Cut]:
        """The texts of the points of some series, stretch by stretch. Errors are those of `points`.

        Cost: where texts are kept, that of copying them; elsewhere that of `points` and of the texts.
        """
        return self._texts_at_hand.texts(state, ids, buckets, wording)

    def _made(self, state: State, ids: Sequence[str], buckets: Buckets, wording: Wording) -> Cut:
        values = self.points(state, ids, buckets, wording.agg)
        return texts_of(values, buckets.begins[:-1], len(ids), wording, at_once=buckets.count)

    def _accept(self, state: State, buckets: Buckets, values: pl.DataFrame, *, whole: bool) -> None:
        """Accept values that were read for a page, unless the history was rewritten since the state (Superseded). If
        they are of all series, note the page's last instant."""
        require_unchanged(self._store, state.head)
        last = values["observed_at"].tail(len(state.series)).max() if whole else None
        if isinstance(last, int):
            self._last_instants.note(state.head, buckets.end, last)

    def last_instant(self, head: Head, second: int) -> int | None:
        """When the history's last observation at or before a second was made, unix seconds; None before the first.

        It costs nothing where memory has the values, or for the end of a page of all series that was just read from the
        store. Else cost and errors are those of a page of one bucket.
        """
        state = self.at(head)
        if second >= state.newest:
            return state.newest
        if second < state.first:
            return None
        known = self._last_instants.before(head, second + 1) or self._at_hand.last_instant(state, second)
        if known is not None:
            return known
        begin = second // HOUR * HOUR
        buckets = Buckets([begin, begin + HOUR], second + 1)
        found = self._rows.read_values(state.series, buckets, whole=True)["observed_at"]
        require_unchanged(self._store, head)
        last: int | None = found.max()  # type: ignore[assignment]
        return last

    def _advance(self, head: Head) -> State:
        """Read what is new in the state that a head names."""
        self._store.take_turn()
        with self._advancing.turn():
            old = self._states[0] if self._states else None
            if old is not None and old.head == head:
                return old
            series = self._rows.read_series(head.last_observed_at)
            changed = oldest_change(self._store, old.head, head) if old is not None else None
            begin = max(closed(head.last_observed_at, 0) - HOUR, 0)
            if old is None:
                state = self._anew(head, series, begin, [(0, -1)])
            elif changed is not None and (
                changed <= old.newest or head.last_observed_at - old.newest > _MOST_APPENDED * HOUR
            ):
                changed = min(changed, old.newest + 1)
                rewrites = [rewrite for rewrite in old.rewrites if rewrite[1] < changed]
                state = self._anew(head, series, begin, [*rewrites, (old.rewrites[-1][0] + 1, changed)])
            else:
                state = self._appended(old, head, series)
            require_unchanged(self._store, head)
            if old is not None and state.rewrites == old.rewrites:
                # Only after the check: an hour that was read while half in place would stay in its block.
                state = self._extended(old, state, begin)
            self._states = (state, *self._states[:1])
            self._load_again(old, state)
            return state

    def _load_again(self, old: State | None, state: State) -> None:
        """Load all history in the background at first, and what a rewrite has changed of it after that. Forget what
        neither of the two states needs that readers may be shown."""
        if not self._memory.limit:
            return
        if old is None:
            self._request(state, state.slots(), Need.LATER)
            return
        if old.rewrites != state.rewrites:
            keys = self._memory.keys(self.history.name)
            stale = [key.slot for key in keys if key.rewrite != state.rewrite_of(key.slot)]
            self._request(state, [slot for slot in stale if not slot.is_derived], Need.URGENT)
        for memory in (self._memory, self._texts_at_hand.memory):
            keys = memory.keys(self.history.name)
            memory.drop([key for key in keys if all(key.rewrite != one.rewrite_of(key.slot) for one in self._states)])

    def _anew(
        self, head: Head, series: Mapping[str, SeriesInfo], begin: int, rewrites: Sequence[tuple[int, int]]
    ) -> State:
        if not self._memory.limit:
            return State(self.history.name, head, series, (), (), rewrites, None)
        months, densities = rows_per_hour(self._rows.read_density(head.last_observed_at), head.last_observed_at)
        tail = self._read_observations(list(series), begin, head.last_observed_at + 1)
        return State(self.history.name, head, series, months, densities, rewrites, tail)

    def _appended(self, old: State, head: Head, series: Mapping[str, SeriesInfo]) -> State:
        """The state after observations were added to the end; its tail begins where the old one does."""
        tail = old.tail
        if tail is not None and head.last_observed_at > old.newest:
            fresh = self._read_observations(list(series), old.newest + 1, head.last_observed_at + 1)
            tail = tail.followed_by(fresh)
        return replace(old, head=head, series=series, tail=tail)

    def _extended(self, old: State, state: State, begin: int) -> State:
        """The state with a tail from `begin` on, after the hours that it has closed were appended to blocks."""
        tail = state.tail
        if tail is None:
            return state
        # An hour of one of the phases closes every quarter of an hour. It began less than an hour before the old newest
        # observation, so the tail has all of it until it is trimmed.
        self._append_hours(old, state, tail)
        if begin > tail.begin:
            self._append_observations(old, state, tail)
            state = replace(state, tail=tail.between(begin, tail.end))
        return state

    def _append_hours(self, old: State, state: State, tail: Observations) -> None:
        """Append the hours that were closed between two states to the blocks that end where they begin."""
        for phase in PHASES:
            for end in range(closed(old.newest, phase) + HOUR, closed(state.newest, phase) + 1, HOUR):
                before, slot = (Slot(state.hours, 0, phase).holding(begin) for begin in (end - 2 * HOUR, end - HOUR))
                block = self._memory.get(state.key(before))
                hour = (end - before.begin) // HOUR - 2
                if not isinstance(block, Block) or block.cells != hour + 1:
                    break
                last = {name: block.at(state.ids, [hour], name) for name in block.values.columns}
                found = tail.last(state.ids, end - HOUR, end)
                values = pl.DataFrame(last)
                if found is not None:
                    values = found.with_columns(pl.col(name).fill_null(last[name]) for name in last)
                self._put_after(state, before, block, slot, values)
                self._append_candles(state, tail, end, last["value"])

    def _append_candles(self, state: State, tail: Observations, end: int, before: pl.Series) -> None:
        """Append the candles of an hour that was closed to the blocks that end where it begins, if they are there."""
        for columns in SETS:
            earlier, slot = (slot_of_hour(hour, columns, len(state.series)) for hour in (end - HOUR, end))
            block = self._memory.get(state.key(earlier))
            if isinstance(block, Block) and block.cells == (end - earlier.begin) // HOUR - 1:
                candles = tail.candles(state.ids, before, end - HOUR, end).select(columns)
                self._put_after(state, earlier, block, slot, candles)

    def _put_after(self, state: State, before: Slot, block: Block, slot: Slot, rows: pl.DataFrame) -> None:
        """Put the rows of an hour after those of the hour before, which the block of a slot has: into the same block,
        or into that of the next slot."""
        extended = block.followed_by(state.ids, rows) if slot == before else make_block(state.ids, rows)
        self._memory.put(state.key(slot), extended)

    def _append_observations(self, old: State, state: State, tail: Observations) -> None:
        """Append the tail to the block of single observations that ends within it."""
        slot = state.slot_of_observations(old.newest)
        block = self._memory.get(state.key(slot)) if slot else None
        if slot and isinstance(block, Observations) and tail.begin <= block.end < slot.end:
            self._memory.put(state.key(slot), block.followed_by(tail).between(block.begin, min(tail.end, slot.end)))

    def _load(self, key: Key) -> Block | Observations | None:
        """Read a block of the newest state; None when nobody needs it any more."""
        state, slot = self._states[0], key.slot
        if key != state.key(slot) or slot.begin > state.newest:
            return None
        if isinstance(slot.holds, Candles):
            loaded: Block | Observations | None = self._load_candles(state, slot)
        elif slot.holds is Kind.OBSERVATIONS:
            loaded = self._load_observations(state, slot)
        else:
            loaded = self._load_values(state, slot)
        if loaded is not None:
            require_unchanged(self._store, state.head)
        return loaded

    def _load_values(self, state: State, slot: Slot) -> Block:
        bounds = range(slot.begin, min(slot.end, closed(state.newest, slot.phase)) + 1, HOUR)
        buckets = Buckets(bounds, state.newest + 1)
        values = self._rows.read_values(state.series, buckets, whole=True, thinned=True)
        return make_block(state.ids, values)

    def _load_observations(self, state: State, slot: Slot) -> Observations:
        return self._read_observations(state.ids, max(slot.begin, 0), min(slot.end, state.newest + 1))

    def _load_candles(self, state: State, slot: Slot) -> Block | None:
        bounds = slot.bounds(state.newest)
        if len(bounds) < 2:
            return None
        candles = []
        for first in range(0, len(bounds) - 1, _CELLS_AT_ONCE):
            buckets = Buckets(bounds[first : first + _CELLS_AT_ONCE + 1], state.newest + 1)
            some, _ = self._rows.read_candles(state.series, buckets, whole=True)
            candles.append(some.select(slot.columns))
        return make_block(state.ids, in_one(candles))

    def _texts_of_slot(self, key: Key) -> tuple[Sequence[str], Cut] | None:
        """The texts of all points of a slot in the newest state, and whose they are; None when nobody needs them any
        more, or while memory lacks the points, which are then loaded."""
        state, slot = self._states[0], key.slot
        bounds, wording = slot.bounds(state.newest), slot.holds
        if key != state.key(slot) or len(bounds) < 2 or not isinstance(wording, Wording):
            return None
        buckets = Buckets(bounds, state.newest + 1, wording.carry)
        values = self._at_hand_for_texts.points(state, state.ids, buckets, wording.agg)
        if values is None:
            return None
        return state.ids, texts_of(values, bounds[:-1], len(state.ids), wording, at_once=1)

    def _read_observations(self, ids: Sequence[str], begin: int, end: int) -> Observations:
        return Observations.of(ids, begin, end, self._rows.read_observations(ids, begin, end))

    def _request(self, state: State, slots: Sequence[Slot], need: Need) -> None:
        self._loader.request([state.key(slot) for slot in slots], self._load, need)
