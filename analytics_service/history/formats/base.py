"""What every format of history pages is given, and what it declares."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import BinaryIO

import polars as pl


@dataclass(frozen=True, slots=True)
class Points:
    """The points of a page.

    `begins` are those of its buckets, unix seconds. `parts` are some series each: their ids, and their values bucket by
    bucket, those of all series in the first bucket first. Columns are named as in the response: `v`, or `o`, `h`, `l`,
    `c` (decimal text or null) and `n` (a count). `single` is true of the one series over all assets.
    """

    begins: Sequence[int]
    parts: Iterable[tuple[Sequence[str], pl.DataFrame]]
    single: bool


@dataclass(frozen=True, slots=True)
class Format:
    """A format: its media type, and what writes points to a file, part by part, so that memory is bounded."""

    media: str
    write: Callable[[Points, BinaryIO], None]
