"""What every format of history pages is given, and what it declares."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, tzinfo

import polars as pl

# The columns of a page: the value of each bucket, or the first, greatest, least and last of its observations and how
# many they are.
VALUE = ("v",)
COUNT = "n"
OHLC = ("o", "h", "l", "c", COUNT)


Parts = Iterable[tuple[Sequence[str], pl.DataFrame]]


@dataclass(frozen=True, slots=True)
class Points:
    """The points of a page.

    `begins` are those of its buckets, unix seconds. `parts` are some series each: their ids, and their values bucket by
    bucket, those of all series in the first bucket first. `columns` are those of every part, VALUE or OHLC: decimal
    text or null, where `o`, `h`, `l` and `c` are null together, and for `n` a count. `single` is true of the one series
    over all assets. Formats that name assets find their `symbols` by id; those that tell the time do so in the `zone`.
    """

    begins: Sequence[int]
    parts: Parts
    single: bool
    columns: tuple[str, ...] = VALUE
    symbols: Mapping[str, str] = field(default_factory=dict)
    zone: tzinfo = UTC


@dataclass(frozen=True, slots=True)
class Format:
    """A format: the name that requests use, its media type, and what encodes points, part by part.

    A format without a `suffix` of files gives the JSON of a member of the answer's data; every other a whole body.
    `names_assets` if it shows symbols. One that `is_packed` is compressed by itself.
    """

    name: str
    media: str
    encode: Callable[[Points], Iterator[bytes]]
    suffix: str = ""
    names_assets: bool = True
    is_packed: bool = False

    @property
    def content_type(self) -> str:
        """The media type with its parameters."""
        return f"{self.media}; charset=utf-8" if self.media.startswith("text/") else self.media
