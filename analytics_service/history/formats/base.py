"""The interface of history formats: the points to encode, their digits, and a format's declaration."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from decimal import ROUND_HALF_EVEN, Context

import polars as pl

from analytics_service.errors import ParameterInvalid
from analytics_service.market.kinds import DECIMAL

MAX_DIGITS = 18
# The column with the number of observations; all others are values.
COUNT = "n"
_PLAIN = pl.col("value").cast(pl.String).str.strip_chars_end("0").str.strip_chars_end(".")


def shorten_digits(values: pl.DataFrame, digits: int | None) -> pl.DataFrame:
    """The values rounded to `digits` significant digits, half to even; unchanged for None. Counts stay.

    Raises ParameterInvalid if a value becomes 10^20, which has a digit too many.
    """
    if digits is None:
        return values
    # Polars' own rounding to significant digits does not always round half to even.
    shorten = Context(prec=digits, rounding=ROUND_HALF_EVEN).create_decimal
    try:
        return values.with_columns(
            pl.Series(name, [None if value is None else shorten(value) for value in values[name]], DECIMAL)
            for name in values.columns
            if name != COUNT
        )
    except pl.exceptions.InvalidOperationError:
        raise ParameterInvalid("digits", "rounds a value up to 10^20, which is too large; use more digits") from None


@dataclass(frozen=True, slots=True)
class Points:
    """The points of a page.

    `begins` are the starts of its buckets, unix seconds. `values` has a row for each point, series by series, and the
    column `v`; or `o`, `h`, `l` and `c`, the first, greatest, least and last observation, and their count `n`. Values
    are numbers or decimal strings, or null. The id of a sum over assets is TOTAL; `single` means that the page has only
    a sum. `symbols` are by asset id. Formats show times of day in the `zone`.
    """

    begins: Sequence[int]
    ids: Sequence[str]
    values: pl.DataFrame
    single: bool
    symbols: Mapping[str, str] = field(default_factory=dict)
    zone: tzinfo = UTC


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A format: its name in requests, media type, and function that encodes points.

    A format with a `suffix` encodes files; others encode a JSON member of the answer's data. `is_packed` means that
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
    """Numbers as plain decimal strings (rule 2.7)."""
    if isinstance(values.dtype, pl.Decimal):
        return values.to_frame("value").select_seq(_PLAIN).to_series().alias(values.name)
    return values.cast(pl.String)


def join_series(fragments: pl.Series, series: int, separator: str) -> list[bytes]:
    """The fragments of each series joined with a separator."""
    if fragments.is_empty():
        return [b""] * series
    by_series = fragments.reshape((series, len(fragments) // series)).arr.join(separator)
    return by_series.cast(pl.Binary).to_list()
