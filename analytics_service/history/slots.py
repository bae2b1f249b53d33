"""Where memory has the values of buckets: which block holds an hour, and where in it."""

from bisect import bisect_left
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from typing import TypeGuard

from analytics_service.market.instants import HOUR
from analytics_service.store.cells import QUARTER

# Offsets from UTC at which local hours may begin: those of zones are multiples of a quarter of an hour.
PHASES = range(0, HOUR, QUARTER)
# Hours of a block, 85 days: a page of days needs few blocks, and one block is read in a fraction of a second.
_HOURS = 2048
# Values of a block. Blocks of many series have fewer hours, so that blocks do not get larger.
_VALUES = 2**18


class Kind(StrEnum):
    """What a block holds, unless that is candles or texts."""

    VALUES = "values at the ends of hours"
    NUMBERS = "values at the ends of hours, as numbers"
    OBSERVATIONS = "single observations"


@dataclass(frozen=True, slots=True)
class Candles:
    """Some columns of candles. With `slide`, their cells are days, one from each hour on."""

    columns: tuple[str, ...]
    slide: bool = False


@dataclass(frozen=True, slots=True)
class Slot:
    """Identifies a block by `number`, counted from `phase` seconds after 1970 in blocks of `cells` cells each.

    Cells are `width` seconds wide: an hour, or a day for candles and texts. What the block `holds` of them is a Kind,
    Candles, or a Wording (text_blocks.py) of texts.
    """

    cells: int
    number: int
    phase: int = 0
    width: int = HOUR
    holds: Hashable = Kind.VALUES

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of its candles, if it holds these."""
        return self.holds.columns if isinstance(self.holds, Candles) else ()

    @property
    def slides(self) -> bool:
        """Whether its cells are days, one from each hour on."""
        return isinstance(self.holds, Candles) and self.holds.slide

    @property
    def is_derived(self) -> bool:
        """Whether the block is made from others that are in memory, when a page needs it."""
        return self.slides or self.holds is Kind.NUMBERS

    @property
    def step(self) -> int:
        """Seconds from the beginning of one cell to that of the next."""
        return HOUR if self.slides else self.width

    @property
    def begin(self) -> int:
        """The unix second at which its first cell begins."""
        return self.number * self.cells * self.step + self.phase

    @property
    def end(self) -> int:
        """The unix second at which its last cell ends."""
        return self.begin + (self.cells - 1) * self.step + self.width

    def at(self, number: int) -> "Slot":
        """Another one of the same blocks."""
        return Slot(self.cells, number, self.phase, self.width, self.holds)

    def holding(self, begin: int) -> "Slot":
        """The one of the same blocks that has the cell which begins at a unix second."""
        return self.at(begin // self.step // self.cells)

    def bounds(self, newest: int) -> range:
        """Starts of the cells that have ended when the newest observation was made, and the end of the last one."""
        return range(self.begin, min(self.end, newest + 1) + 1, self.width)


def cells_of(series: int, most: int = _HOURS, values: int = _VALUES) -> int:
    """How many cells a block of so many series has: `most`, or as many as have so many `values`."""
    return max(min(most, values // max(series, 1)), 1)


@dataclass(frozen=True, slots=True)
class Run:
    """Cells of one block (numbers from 0 in the slot): consecutive ones, or, of values, one for each bucket."""

    slot: Slot
    cells: Sequence[int]


def runs_of(slot: Slot, begin: int, count: int) -> list[Run]:
    """So many cells from a unix second on, in blocks like a slot."""
    cells, first = slot.cells, begin // slot.step
    return [
        Run(slot.at(number), range(max(first - number * cells, 0), min(first + count - number * cells, cells)))
        for number in range(first // cells, (first + count - 1) // cells + 1)
    ]


@dataclass(frozen=True, slots=True)
class Lookup:
    """Where memory has the values of a page's first buckets; the buckets after them have none.

    Where the page ends within an hour, its last value in a block is that of the hour's start, `open_from`. Observations
    from `open_from` on count too. It is None where the page ends with a quarter of an hour.
    """

    runs: list[Run]
    open_from: int | None


def look_up(begins: Sequence[int], until: int, hours: int) -> Lookup | None:
    """Where blocks of `hours` hours hold the values of the buckets between `begins` that begin before `until`.

    Nothing before `until` may be observed any more. None when a bucket ends within a quarter of an hour, as in zones of
    long ago.
    """
    ends = begins[1 : 1 + bisect_left(begins, until, 0, max(len(begins) - 1, 0))]
    open_from = None
    if ends and ends[-1] > until:
        last = until
        if until % QUARTER:
            # Hours of the zone start at the same minute as the last bucket.
            last = until - (until - begins[len(ends) - 1]) % HOUR
            # The first hour of zones a part of an hour off begins before 1970; no observation does.
            open_from = max(last, 0)
        ends = [*ends[:-1], last]
    phases = {end % HOUR for end in (ends[:1] if _are_hours(ends) else ends)}
    if any(phase % QUARTER for phase in phases):
        return None
    runs: list[Run] = []
    # Most pages have one phase only.
    alike = groupby(ends, key=lambda end: end % HOUR) if len(phases) > 1 else [(phase, ends) for phase in phases]
    for phase, run in alike:
        numbers = _numbers_of(run)
        while numbers:
            number = numbers[0] // hours
            within = bisect_left(numbers, (number + 1) * hours)
            runs.append(Run(Slot(hours, number, phase), _less(numbers[:within], number * hours)))
            numbers = numbers[within:]
    return Lookup(runs, open_from)


def _are_hours(ends: Iterable[int]) -> TypeGuard[range]:
    """Whether ends of buckets are a range of hours, as those of most pages of hours are: it need not be counted."""
    return isinstance(ends, range) and ends.step == HOUR


def _numbers_of(ends: Iterable[int]) -> Sequence[int]:
    """The numbers of the hours that end then; as a range, if each is the one after the one before: that takes no time
    to split and to shift."""
    if _are_hours(ends):
        return range(ends.start // HOUR - 1, ends.start // HOUR - 1 + len(ends))
    numbers = [end // HOUR - 1 for end in ends]
    span = range(numbers[0], numbers[-1] + 1)
    return span if len(span) == len(numbers) and [*span] == numbers else numbers


def _less(numbers: Sequence[int], other: int) -> Sequence[int]:
    if isinstance(numbers, range):
        return range(numbers.start - other, numbers.stop - other)
    return [number - other for number in numbers]


def closed(newest: int, phase: int) -> int:
    """The end of the last hour of a phase that the newest observation has closed."""
    return newest + 1 - (newest + 1 - phase) % HOUR
