"""Values and candles of buckets, from the blocks in memory. Missing blocks are requested, to be loaded later."""

from collections.abc import Callable, Sequence

import polars as pl

from analytics_service.history.blocks import (
    NO_HOURS,
    NOTHING_LATER,
    Block,
    Lookup,
    Observations,
    Run,
    Slot,
    candles_of,
    joined,
    last_observed,
    look_up,
    make_block,
)
from analytics_service.history.candle_blocks import (
    CandleLookup,
    look_up_candles,
    look_up_hours,
)
from analytics_service.history.candles import Aggregate, combined, needed
from analytics_service.history.last_instants import LastInstants
from analytics_service.history.memory import Memory
from analytics_service.history.rows import Buckets
from analytics_service.history.states import State
from analytics_service.market.instants import DAY, HOUR

Request = Callable[[State, Sequence[Slot]], None]


class AtHand:
    """Values and candles of buckets, from memory. `request` has missing blocks of a state loaded. The last instants of
    the pages that are found are noted in `last_instants`."""

    def __init__(self, memory: Memory, request: Request, last_instants: LastInstants) -> None:
        self.memory = memory
        self.request = request
        self._last_instants = last_instants

    def values(self, state: State, ids: Sequence[str], buckets: Buckets) -> pl.Series | None:
        """Values of some series in each bucket, bucket by bucket; None, and a request for them, when blocks are not
        there."""
        lookup = look_up(buckets.begins, buckets.until, state.hours) if self.memory.limit else None
        if lookup is None:
            return None
        blocks, missing, latest = self._found(state, lookup, buckets.until)
        if latest is not None and not missing:
            last = last_observed(lookup, blocks, latest, buckets.until) if blocks else None
            if last is not None:
                self._last_instants.note(state.head, buckets.end, last)
            return joined(lookup, blocks, latest, ids, buckets)
        if lookup.open_from is not None and latest is None:
            missing += filter(None, [state.slot_of_observations(lookup.open_from)])
        self.request(state, missing)
        return None

    def block(self, state: State, run: Run) -> Block | None:
        """The block of a run, if memory has all of its hours; an empty one before the first observation."""
        if run.slot.end <= state.first:
            return NO_HOURS
        block = self.memory.get(state.key(run.slot))
        return block if isinstance(block, Block) and block.hours > run.hours[-1] else None

    def observations(self, state: State, begin: int, until: int) -> Observations | None:
        """Single observations that include those of [begin, until), if they are in memory."""
        if state.tail is not None and state.tail.begin <= begin:
            return state.tail
        slot = state.slot_of_observations(begin)
        found = self.memory.get(state.key(slot)) if slot else None
        return found if isinstance(found, Observations) and found.end >= until else None

    def _found(self, state: State, lookup: Lookup, until: int) -> tuple[list[Block], list[Slot], Observations | None]:
        """What a lookup needs: the blocks of its runs that are in memory, the slots of those that are not, and single
        observations, None if these are not in memory."""
        later = NOTHING_LATER if lookup.open_from is None else self.observations(state, lookup.open_from, until)
        found = [(run.slot, self.block(state, run)) for run in lookup.runs]
        blocks = [block for _, block in found if block is not None]
        return blocks, [slot for slot, block in found if block is None], later

    def candles(
        self, state: State, ids: Sequence[str], buckets: Buckets, agg: Aggregate
    ) -> tuple[pl.DataFrame, pl.Series] | None:
        """Candles of some series in each bucket, with the columns that an aggregate needs, and the values at buckets'
        ends. None if blocks are missing, which are then requested."""
        lookup = look_up_candles(buckets, needed(agg), len(state.series))
        last = self.values(state, ids, buckets) if lookup is not None else None
        if lookup is None or last is None:
            return None
        cells, counts = self._cells(state, ids, lookup, needed(agg)), lookup.counts
        if cells is not None and lookup.open_from is not None:
            rest = self._open_candle(state, ids, lookup.open_from, buckets.until)
            cells = None if rest is None else pl.concat([cells, rest.select(cells.columns)], rechunk=True)
            counts = [*counts[:-1], counts[-1] + 1]
        if cells is None:
            return None
        return combined(cells, len(ids), [*counts, *([0] * (buckets.count - len(counts)))]), last

    def _cells(
        self, state: State, ids: Sequence[str], lookup: CandleLookup, columns: Sequence[str]
    ) -> pl.DataFrame | None:
        """The cells of a lookup. None if blocks are missing, which are then requested.

        Days are made from hours where no bucket is wider, so that pages in many zones need only blocks of hours.
        """
        blocks: list[Block] = []
        missing: list[Slot] = []
        for run in lookup.runs:
            block = self.block(state, run)
            if block is None and run.slot.width == DAY and lookup.days == 1:
                block = self._days_from_hours(state, run.slot)
            elif block is None:
                missing.append(run.slot)
            blocks += [block] if block is not None else []
        self.request(state, missing)
        if len(blocks) < len(lookup.runs):
            return None
        return candles_of(blocks, [run.hours for run in lookup.runs], ids, columns)

    def _days_from_hours(self, state: State, slot: Slot) -> Block | None:
        """A block of days made from hours, and kept from now on. None if blocks of hours are missing and requested."""
        days = len(slot.bounds(state.newest)) - 1
        lookup = look_up_hours(slot, days, len(state.series))
        hours = self._cells(state, state.ids, lookup, slot.columns) if days > 0 else None
        if hours is None:
            return None
        block = make_block(state.ids, combined(hours, len(state.ids), lookup.counts))
        self.memory.put(state.key(slot), block)
        return block

    def _open_candle(self, state: State, ids: Sequence[str], begin: int, until: int) -> pl.DataFrame | None:
        """Candles from a second on to the end of a page, within an hour; None when memory lacks them."""
        before = self.values(state, ids, Buckets([begin - HOUR, begin], until))
        observed = self.observations(state, begin, until)
        return None if before is None or observed is None else observed.candles(ids, before, begin, until)
