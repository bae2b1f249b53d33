"""The buckets of a page."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import sub


@dataclass(frozen=True, slots=True)
class Buckets:
    """The buckets between `begins` (unix s, one more than buckets), filled from observations before `until`.

    Without `carry`, a bucket without an observation of its own has no value.
    """

    begins: Sequence[int]
    until: int
    carry: bool = True

    @property
    def count(self) -> int:
        """How many buckets there are."""
        return max(len(self.begins) - 1, 0)

    @property
    def end(self) -> int:
        """The unix second at which they end, `until` at the latest. There must be a bucket."""
        return min(self.begins[-1], self.until)

    def alike(self, first: int, stop: int) -> Iterator[tuple[int, int, int]]:
        """Stretches of the buckets from `first` to before `stop` that are equally long: the number of each one's first
        bucket, how many seconds a bucket has, and how many buckets it has."""
        if isinstance(self.begins, range):
            if first < stop:
                yield first, self.begins.step, stop - first
            return
        for width, some in groupby(map(sub, self.begins[first + 1 : stop + 1], self.begins[first:stop])):
            count = len([*some])
            yield first, width, count
            first += count
