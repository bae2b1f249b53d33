"""The interface of history formats: the points that they encode, and what they declare."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, tzinfo

import polars as pl

# The column with the number of a bucket's observations; all others are values.
COUNT = "n"
_PLAIN = pl.col("value").cast(pl.String).str.strip_chars_end("0").str.strip_chars_end(".")


@dataclass(frozen=True, slots=True)
class Points:
    """The points of a page.

    `begins` are the starts of its buckets, unix seconds. `values` has a row for each point, series by series, and the
    column `v`; or `o`, `h`, `l` and `c`, the first, greatest, least and last observation, and their count `n`. Values
    are numbers or decimal strings; null without a value. The id of a sum over assets is TOTAL, and `single` is true if
    there is nothing else. `symbols` are by asset id. Formats that show times of day show them in the `zone`.
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

    A format with a `suffix` encodes files; others encode a JSON member of the answer's data. `is_packed` means that its
    files are already compressed.
    """

    name: str
    media: str
    encode: Callable[[Points], bytes]
    suffix: str = ""
    is_packed: bool = False

    @property
    def content_type(self) -> str:
        """The media type with its parameters."""
        return f"{self.media}; charset=utf-8" if self.media.startswith("text/") else self.media


def decimal_strings(values: pl.Series) -> pl.Series:
    """Numbers in plain notation (rule 2.7)."""
    if isinstance(values.dtype, pl.Decimal):
        return values.to_frame("value").select_seq(_PLAIN).to_series().alias(values.name)
    return values.cast(pl.String)


def joined(fragments: pl.Series, series: int, separator: str) -> list[bytes]:
    """The fragments of each series joined with a separator."""
    if fragments.is_empty():
        return [b""] * series
    by_series = fragments.reshape((series, len(fragments) // series)).arr.join(separator)
    return by_series.cast(pl.Binary).to_list()
