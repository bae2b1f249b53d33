"""What a caller asks of a history."""

from dataclasses import dataclass
from functools import cached_property
from zoneinfo import ZoneInfo

from analytics_service.series.grid import Grid, Period, make_grid


@dataclass(frozen=True)
class Query:
    """A page of a history. Instants are unix seconds, both inclusive; `ids` None means all assets."""

    start: int
    end: int
    period: Period
    interval: int
    zone: ZoneInfo
    limit: int
    offset: int
    carry: bool
    ids: list[str] | None

    @cached_property
    def grid(self) -> Grid:
        """The buckets of the whole range. ParameterInvalid when they are too many."""
        return make_grid(self.start, self.end, self.period, self.interval, self.zone)

    @cached_property
    def begins(self) -> list[int]:
        """Begins of the page's buckets and of the one after them; empty where the range has none."""
        return self.grid.page(self.offset, self.limit)

    def until(self, last_observed_at: int) -> int:
        """The unix second before which observations count, when the newest one of the history is known."""
        return min(self.end, last_observed_at) + 1

    def is_closed(self, last_observed_at: int) -> bool:
        """Whether the page has buckets, and all of them end at or before the newest observation of the history."""
        return bool(self.begins) and min(self.begins[-1], self.end + 1) <= last_observed_at
