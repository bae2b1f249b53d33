"""The interface of formats of history pages: what they encode, and what they declare."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from typing import Any

import polars as pl

# The columns of a page: the value of each bucket, or the first, greatest, least and last of its observations and how
# many they are.
VALUE = ("v",)
COUNT = "n"
OHLC = ("o", "h", "l", "c", COUNT)

Text = bytes | memoryview
# The points of each series in some buckets, for each of the arrays that a format has of them.
Cut = Sequence[Sequence[Text]]
# Makes the texts of points, given the starts of their buckets, the values of some series bucket by bucket, how many
# series these are, and how many points of a series are one text: those of each array that the format has.
MakeTexts = Callable[[Sequence[int], pl.DataFrame, int, int], Cut]


@dataclass(frozen=True, slots=True)
class Points:
    """The points of a page.

    `begins` are the starts of its buckets, unix seconds. Each of `parts` has some series: their ids, and a table of
    their values bucket by bucket, with all series of the first bucket first. `columns` are the same in every part,
    VALUE or OHLC: decimal text or null, where `o`, `h`, `l` and `c` are null together, and a count for `n`; formats
    that take numbers may be given decimals instead of text. `single` is true for the one series over all assets.
    `symbols` are by asset id, for formats that name assets. Formats that show times of day show them in the `zone`.
    Those that are members of the answer's data put the JSON `around` them, and are given cuts of texts instead of
    tables (`TextParts`).
    """

    begins: Sequence[int]
    parts: Iterable[tuple[Sequence[str], Any]]
    single: bool
    columns: tuple[str, ...] = VALUE
    symbols: Mapping[str, str] = field(default_factory=dict)
    zone: tzinfo = UTC
    around: tuple[str, str] = ("", "")


@dataclass(frozen=True, slots=True)
class Format:
    """A format: the name that requests use, its media type, and the function that encodes points, part by part.

    A format without a file `suffix` encodes a JSON member of the answer's data, which is put together from the texts
    that `texts` makes; any other encodes a whole body. `names_assets` says that it shows symbols, `takes_numbers` that
    it encodes values as numbers, and need not be given their texts, and `is_packed` that its files are already
    compressed.
    """

    name: str
    media: str
    encode: Callable[[Points], Iterator[bytes]]
    suffix: str = ""
    names_assets: bool = True
    takes_numbers: bool = False
    is_packed: bool = False
    texts: MakeTexts | None = None

    @property
    def content_type(self) -> str:
        """The media type with its parameters."""
        return f"{self.media}; charset=utf-8" if self.media.startswith("text/") else self.media
