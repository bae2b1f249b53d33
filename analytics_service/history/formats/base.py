"""The interface of history formats: the points to encode, their digits, and a format's declaration."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, tzinfo

import polars as pl

# A number of this many digits, plus 1, fits 64 bits.
MAX_DIGITS = 18
_DIGITS = (
    pl.col("decimal")
    .str.strip_prefix("-")
    .str.replace(".", "", literal=True)
    .str.strip_chars_start("0")
    .alias("digits")
)
# The column with the number of observations; all others are values.
COUNT = "n"
_PLAIN = pl.col("value").cast(pl.String).str.strip_chars_end("0").str.strip_chars_end(".")


def shorten_digits(values: pl.DataFrame, digits: int | None) -> pl.DataFrame:
    """The values with at most `digits` significant digits, as decimal strings; unchanged for None. Counts stay."""
    if digits is None:
        return values
    return values.with_columns(
        round_digits(decimal_strings(column), digits) for column in values if column.name != COUNT
    )


def round_digits(values: pl.Series, digits: int) -> pl.Series:
    """Decimal strings or nulls with at most `digits` (1 to 18) significant digits, rounded half to even. Results are
    plain decimals (rule 2.7, plain decimals)."""
    # Strings of at most `digits` characters need no rounding.
    long = (values.str.len_bytes() > digits).fill_null(False)
    if not long.any():
        return values
    frame = pl.DataFrame({"row": long.arg_true(), "decimal": values.filter(long)})
    cut = frame.with_columns(_PLACES, _DIGITS).with_columns(
        kept=pl.col("digits").str.head(digits), rest=pl.col("digits").str.slice(digits)
    )
    cut = cut.filter(pl.col("rest") != "")
    if not cut.height:
        return values
    return values.clone().scatter(cut["row"], cut.with_columns(_ROUNDED, _LEFT).select(_PLAIN_DIGITS).to_series())


def _length(column: pl.Expr) -> pl.Expr:
    return column.str.len_bytes().cast(pl.Int64)


def _up() -> pl.Expr:
    """1 where the last kept digit is rounded up (above a half, or at a half after an odd digit), else 0."""
    rest = pl.col("rest")
    odd = pl.col("kept").str.tail(1).is_in(["1", "3", "5", "7", "9"])
    # Digits after a decimal point sort as strings in the order of their fractions.
    return (pl.when(odd).then(rest >= "5").otherwise(rest.str.strip_chars_end("0") > "5")).cast(pl.Int64)


def _plain() -> pl.Expr:
    """The number in `rounded` with its last `left` digits after the point, without trailing zeros there."""
    number, left = pl.col("rounded"), pl.col("left")
    integer = number.str.pad_end(_length(number) - left.clip(upper_bound=0), "0")
    # At least one digit before the point.
    padded = number.str.zfill(left.clip(0) + 1)
    point = _length(padded) - left.clip(0)
    fractional = padded.str.head(point) + "." + padded.str.slice(point)
    fractional = fractional.str.strip_chars_end("0").str.strip_chars_end(".")
    sign = pl.when(pl.col("decimal").str.starts_with("-")).then(pl.lit("-")).otherwise(pl.lit(""))
    return sign + pl.when(left > 0).then(fractional).otherwise(integer)


# Built once, because building expressions is slow. `places` counts digits after the point; `digits` has all digits
# without leading zeros.
_PLACES = (_length(pl.col("decimal")) - pl.col("decimal").str.find(".", literal=True) - 1).fill_null(0).alias("places")
_ROUNDED = (pl.col("kept").cast(pl.Int64) + _up()).cast(pl.String).alias("rounded")
_LEFT = (pl.col("places") - _length(pl.col("rest"))).alias("left")
_PLAIN_DIGITS = _plain()


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
