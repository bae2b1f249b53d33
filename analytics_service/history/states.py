"""The state of a history as of a head: its series, and the keys of its blocks."""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from analytics_service.history.memory import Key
from analytics_service.history.observations import Observations
from analytics_service.history.sample import places_of
from analytics_service.history.slots import Kind, Slot, cells_of
from analytics_service.market.instants import HOUR, next_month
from analytics_service.store.ledger import Head

# Limits of a block of single observations: about so many of them, some 5 MB, and so many hours.
_MOST_OBSERVATIONS = 200_000
_MOST_HOURS = 2048


@dataclass(frozen=True, slots=True)
class SeriesInfo:
    """A series' first observation (unix s) and its last one, known without reading a page."""

    first_at: int
    last_observed_at: int
    last_value: str


@dataclass(frozen=True)
class State:
    """The state of a history, by its name, that a head names.

    `series` are by asset id in the order of ids. `months` are the starts of UTC months (unix s), and `densities` the
    rows an hour in each. `rewrites` are numbers of rewrites and the oldest second that each changed, both ascending.
    `tail` is None where nothing is kept in memory.
    """

    name: str
    head: Head
    series: Mapping[str, SeriesInfo]
    months: Sequence[int]
    densities: Sequence[float]
    rewrites: Sequence[tuple[int, int]]
    tail: Observations | None

    @property
    def newest(self) -> int:
        """The history's newest observation, unix seconds."""
        return self.head.last_observed_at

    @cached_property
    def first(self) -> int:
        """The unix second before which nothing was observed."""
        return min((one.first_at for one in self.series.values()), default=self.newest + 1)

    @cached_property
    def ids(self) -> list[str]:
        """Ids of all series."""
        return list(self.series)

    @cached_property
    def places(self) -> Mapping[str, int]:
        """The place of each series in `ids`."""
        return places_of(self.ids)

    @cached_property
    def hours(self) -> int:
        """Hours of a block."""
        return cells_of(len(self.series))

    def rewrite_of(self, slot: Slot) -> int:
        """The number of the last rewrite that may have changed what a slot's block holds."""
        after = bisect_left(self.rewrites, slot.end, key=lambda rewrite: rewrite[1])
        return self.rewrites[after - 1][0]

    def key(self, slot: Slot) -> Key:
        """What identifies a slot's block in this state."""
        return Key(self.name, slot, self.rewrite_of(slot))

    def slot_of_observations(self, second: int) -> Slot | None:
        """The slot of single observations that holds a second; None where an hour has too many."""
        hours = _MOST_HOURS
        while hours:
            slot = Slot(hours, second // HOUR // hours, holds=Kind.OBSERVATIONS)
            months = slice(max(bisect_right(self.months, slot.begin) - 1, 0), bisect_left(self.months, slot.end))
            if max(self.densities[months], default=0) * hours <= _MOST_OBSERVATIONS:
                return slot
            hours //= 2
        return None

    def slots(self) -> list[Slot]:
        """The slots of whole hours that the history has, the newest first, and then those of single observations."""
        if not self.series:
            return []
        span = self.hours * HOUR
        newest, oldest = self.newest // span, self.first // span
        found = [Slot(self.hours, number) for number in range(newest, oldest - 1, -1)]
        second = self.newest
        while second >= self.first and (slot := self.slot_of_observations(second)) is not None:
            found.append(slot)
            second = slot.begin - 1
        return found


def rows_per_hour(rows: Mapping[int, int], newest: int) -> tuple[list[int], list[float]]:
    """Starts of months (unix s), and the rows an hour in each; `rows` are those of each month, in order."""
    ends = [min(next_month(month), newest + 1) for month in rows]
    hours = [max((end - month) / HOUR, 1.0) for month, end in zip(rows, ends, strict=True)]
    return [*rows], [count / many for count, many in zip(rows.values(), hours, strict=True)]
