"""Points of buckets, from the blocks in memory. Missing blocks are requested, to be loaded later."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby

import polars as pl

from analytics_service.history.blocks import (
    NO_CELLS,
    Block,
    Picked,
    candles_of,
    in_one,
    values_of,
)
from analytics_service.history.buckets import Buckets
from analytics_service.history.candle_blocks import CandleLookup, hours_of_days, look_up_candles
from analytics_service.history.candles import Aggregate, combined, needed, no_candles, summarized
from analytics_service.history.day_blocks import Days, candles_of_days, make_days
from analytics_service.history.memory import Memory
from analytics_service.history.observations import NOTHING_LATER, Observations
from analytics_service.history.slots import PHASES, Kind, Lookup, Run, Slot, closed, look_up, runs_of
from analytics_service.history.states import State
from analytics_service.market.instants import HOUR
from analytics_service.store.cells import QUARTER
from analytics_service.store.columns import DECIMAL

Request = Callable[[State, Sequence[Slot]], None]


class AtHand:
    """Points of buckets, from memory. `request` has missing blocks of a state loaded."""

    def __init__(self, memory: Memory, request: Request) -> None:
        self.memory = memory
        self.request = request

    def points(
        self, state: State, ids: Sequence[str], buckets: Buckets, agg: Aggregate, *, numbers: bool = False
    ) -> pl.DataFrame | None:
        """The columns of the points of some series, bucket by bucket: `v`, or `o`, `h`, `l`, `c` and `n`. None if
        blocks are missing, which are then requested. `numbers` is that of `values`."""
        if agg is Aggregate.LAST:
            values = self.values(state, ids, buckets, numbers=numbers)
            return None if values is None else values.to_frame("v")
        found = self.candles(state, ids, replace(buckets, carry=True), agg)
        return None if found is None else summarized(agg, *found, carry=buckets.carry)

    def values(self, state: State, ids: Sequence[str], buckets: Buckets, *, numbers: bool = False) -> pl.Series | None:
        """Values of some series in each bucket, bucket by bucket, as texts; as `numbers`, if wanted, where values are
        carried. None if blocks are missing, which are then requested."""
        lookup = look_up(buckets.begins, buckets.until, state.hours) if self.memory.limit else None
        if lookup is None:
            return None
        blocks, missing, latest = self._found(state, lookup, buckets.until)
        if latest is not None and not missing:
            # Numbers come without instants, which tell what buckets to leave empty.
            if numbers and buckets.carry:
                blocks = [self._numbers(state, run, block) for run, block in zip(lookup.runs, blocks, strict=True)]
            return values_of(lookup, blocks, latest, ids, buckets)
        if lookup.open_from is not None and latest is None:
            missing += filter(None, [state.slot_of_observations(lookup.open_from)])
        self.request(state, missing)
        return None

    def last_instant(self, state: State, second: int) -> int | None:
        """When the last observation of the state at or before a second was made, unix seconds; None before the first
        one, and if blocks are missing. At the end of a quarter of an hour these are then requested. Elsewhere the page
        that ends there has done so."""
        if not self.memory.limit:
            return None
        until = second + 1
        # A quarter of an hour ends with the hours of one phase. Within one, the hours of any zone tell.
        for phase in PHASES if until % QUARTER else (until % HOUR,):
            begin = closed(second, phase)
            later = NOTHING_LATER if begin == until else self.observations(state, begin, until)
            if later is None:
                continue
            if (last := later.newest(begin, until)) is not None:
                return last
            [run] = runs_of(Slot(state.hours, 0, phase), begin - HOUR, 1)
            block = self.block(state, run)
            if block is not None:
                return block.newest(run.cells[0])
            if begin == until:
                self.request(state, [run.slot])
        return None

    def block(self, state: State, run: Run) -> Block | None:
        """The block of a run, if memory has all of its cells; an empty one before the first observation."""
        block = self._kept(state, run.slot)
        return block if block is NO_CELLS or (block is not None and block.cells > run.cells[-1]) else None

    def _kept(self, state: State, slot: Slot) -> Block | None:
        """What memory has of a block; an empty one before the first observation."""
        if slot.end <= state.first:
            return NO_CELLS
        block = self.memory.get(state.key(slot))
        return block if isinstance(block, Block) else None

    def _numbers(self, state: State, run: Run, block: Block) -> Block:
        """A run's block of values as numbers, which is kept from now on. Making it takes some milliseconds."""
        slot = replace(run.slot, holds=Kind.NUMBERS)
        kept = self._kept(state, slot)
        if kept is not None and kept.cells > run.cells[-1] and kept.ids == block.ids:
            return kept
        numbers = block.column("value", slice(None)).cast(DECIMAL)
        made = Block(block.ids, numbers.to_frame("value"))
        if block is not NO_CELLS:
            self.memory.put(state.key(slot), made)
        return made

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
        """The cells of a lookup. None if blocks are missing, which are then requested."""
        cells = [
            (self._found_days if are_days else self._found_cells)(state, ids, [*runs], columns)
            for are_days, runs in groupby(lookup.runs, key=lambda run: run.slot.slides)
        ]
        found = [one for one in cells if one is not None]
        if len(found) < len(cells):
            return None
        return in_one(found) if found else no_candles(columns, 0)

    def _found_cells(
        self, state: State, ids: Sequence[str], runs: Sequence[Run], columns: Sequence[str]
    ) -> pl.DataFrame | None:
        blocks = self._blocks(state, runs)
        return None if blocks is None else candles_of(blocks, [run.cells for run in runs], ids, columns)

    def _found_days(
        self, state: State, ids: Sequence[str], runs: Sequence[Run], columns: Sequence[str]
    ) -> pl.DataFrame | None:
        days = []
        for run in runs:
            hours = hours_of_days(run)
            blocks = self._blocks(state, hours)
            block = None if blocks is None else self._days(state, run)
            if blocks is not None and block is not None:
                days.append(Days(block, run.cells, Picked(blocks, [one.cells for one in hours], block.ids)))
        return candles_of_days(days, ids, columns) if len(days) == len(runs) else None

    def _blocks(self, state: State, runs: Sequence[Run]) -> list[Block] | None:
        """The blocks of some runs. None if any is missing; these are requested."""
        found = [self.block(state, run) for run in runs]
        self.request(state, [run.slot for run, block in zip(runs, found, strict=True) if block is None])
        blocks = [block for block in found if block is not None]
        return blocks if len(blocks) == len(runs) else None

    def _days(self, state: State, run: Run) -> Block | None:
        """The block of a run of days, made from those of hours if it is not there, and kept from now on. None if these
        are no longer in memory."""
        kept = self.block(state, run)
        if kept is not None:
            return kept
        blocks, hours = self._hours_at_hand(state, hours_of_days(replace(run, cells=range(run.slot.cells))))
        candles = candles_of(blocks, hours, state.ids, run.slot.columns)
        days = Block(state.ids, make_days(candles, len(state.ids)))
        self.memory.put(state.key(run.slot), days)
        return days if days.cells > run.cells[-1] else None

    def _hours_at_hand(self, state: State, runs: Sequence[Run]) -> tuple[list[Block], list[Sequence[int]]]:
        """The hours of some runs as far as they are in memory: their blocks, and which hours of each."""
        blocks: list[Block] = []
        hours: list[Sequence[int]] = []
        for run in runs:
            block = self._kept(state, run.slot)
            if block is None:
                break
            blocks.append(block)
            hours.append(run.cells if block is NO_CELLS else run.cells[: max(block.cells - run.cells[0], 0)])
            if len(hours[-1]) < len(run.cells):
                break
        return blocks, hours

    def _open_candle(self, state: State, ids: Sequence[str], begin: int, until: int) -> pl.DataFrame | None:
        """Candles from a second on to the end of a page, within an hour; None when memory lacks them."""
        before = self.values(state, ids, Buckets([begin - HOUR, begin], until))
        observed = self.observations(state, begin, until)
        return None if before is None or observed is None else observed.candles(ids, before, begin, until)
