"""The interface of formats of history pages: what they encode, and what they declare."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, tzinfo

import polars as pl

# The columns of a page: the value of each bucket, or the first, greatest, least and last of its observations and how
# many they are.
VALUE = ("v",)
COUNT = "n"
OHLC = ("o", "h", "l", "c", COUNT)

Text = bytes | memoryview
# The points of each series in some buckets, for each of the arrays that a format has of them.
Cut = Sequence[Sequence[Text]]
# Some series at a time: their ids, and a table of their values bucket by bucket, with all series of the first bucket
# first. Its columns are those of the page: decimal text or null, where `o`, `h`, `l` and `c` are null together, and a
# count for `n`; formats that take numbers may be given decimals instead of text.
Tables = Iterable[tuple[Sequence[str], pl.DataFrame]]
# Some series at a time: their ids, and the texts of their points, one cut for each stretch of buckets.
TextParts = Iterable[tuple[Sequence[str], Sequence[Cut]]]
# Makes the texts of points, given the starts of their buckets, the values of some series bucket by bucket, how many
# series these are, and how many points of a series are one text: those of each array that the format has.
MakeTexts = Callable[[Sequence[int], pl.DataFrame, int, int], Cut]


@dataclass(frozen=True, slots=True)
class Points:
    """Which points a page has.

    `begins` are the starts of its buckets, unix seconds. `columns` are VALUE or OHLC. `single` is true for the one
    series over all assets. `symbols` are by asset id, for formats that name assets. Formats that show times of day show
    them in the `zone`.
    """

    begins: Sequence[int]
    single: bool
    columns: tuple[str, ...] = VALUE
    symbols: Mapping[str, str] = field(default_factory=dict)
    zone: tzinfo = UTC


@dataclass(frozen=True, slots=True)
class _Format:
    """The name that requests use, and the media type. `names_assets` says that the format shows symbols."""

    name: str
    media: str
    names_assets: bool = field(default=True, kw_only=True)


@dataclass(frozen=True, slots=True)
class FileFormat(_Format):
    """A format of files: a function that encodes them from tables, part by part, and their `suffix`.

    `takes_numbers` says that it encodes values as numbers, and need not be given their texts, and `is_packed` that its
    files are already compressed.
    """

    encode: Callable[[Points, Tables], Iterator[bytes]]
    suffix: str
    takes_numbers: bool = False
    is_packed: bool = False

    @property
    def content_type(self) -> str:
        """The media type with its parameters."""
        return f"{self.media}; charset=utf-8" if self.media.startswith("text/") else self.media


@dataclass(frozen=True, slots=True)
class MemberFormat(_Format):
    """A format of a JSON member of the answer's data: a function that puts it together from texts of points, part by
    part, with the JSON around it, and one that makes these texts."""

    encode: Callable[[Points, TextParts, tuple[str, str]], Iterator[bytes]]
    texts: MakeTexts


Format = FileFormat | MemberFormat
