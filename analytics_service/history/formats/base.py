"""The interface of formats of history pages: what they encode, and what they declare."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, tzinfo

import polars as pl

# The column that says how many observations a bucket has; all others are values.
COUNT = "n"
_PLAIN = pl.col("value").cast(pl.String).str.strip_chars_end("0").str.strip_chars_end(".")


@dataclass(frozen=True, slots=True)
class Points:
    """The points of a page.

    `begins` are the starts of its buckets, unix seconds. `values` has a row for each point, series by series, and the
    column `v`; or `o`, `h`, `l` and `c`, the first, greatest, least and last observation, and their count `n`. Values
    are numbers or their plain texts, null where there is none (in all columns alike). `single` is true for the one
    series over all assets. `symbols` are by asset id, for formats that name assets. Formats that show times of day show
    them in the `zone`.
    """

    begins: Sequence[int]
    ids: Sequence[str]
    values: pl.DataFrame
    single: bool
    symbols: Mapping[str, str] = field(default_factory=dict)
    zone: tzinfo = UTC


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A format: the name that requests use, the media type, and the function that encodes points.

    With a `suffix` it is one of files; else it encodes a JSON member of the answer's data. `names_assets` says that it
    shows symbols, and `is_packed` that its files are already compressed.
    """

    name: str
    media: str
    encode: Callable[[Points], bytes]
    suffix: str = ""
    names_assets: bool = True
    is_packed: bool = False

    @property
    def content_type(self) -> str:
        """The media type with its parameters."""
        return f"{self.media}; charset=utf-8" if self.media.startswith("text/") else self.media


def text(values: pl.Series) -> pl.Series:
    """Numbers as plain decimal text (rule 2.7)."""
    if isinstance(values.dtype, pl.Decimal):
        return values.to_frame("value").select_seq(_PLAIN).to_series().alias(values.name)
    return values.cast(pl.String)


def joined(texts: pl.Series, series: int, separator: str) -> list[bytes]:
    """The texts of each series as one, with a separator between them."""
    if texts.is_empty():
        return [b""] * series
    each = texts.reshape((series, len(texts) // series)).arr.join(separator)
    return each.cast(pl.Binary).to_list()
