"""Rounds decimal strings to significant digits, vectorised and exact (rule 2.19)."""

import polars as pl

from analytics_service.history.formats.base import COUNT, decimal_strings

# A number of this many digits, plus 1, fits 64 bits.
MAX_DIGITS = 18


def shortened(values: pl.DataFrame, digits: int | None) -> pl.DataFrame:
    """The values with at most `digits` significant digits, as decimal strings. None changes nothing. Counts stay as
    they are."""
    if digits is None:
        return values
    return values.with_columns(rounded(decimal_strings(column), digits) for column in values if column.name != COUNT)


def rounded(values: pl.Series, digits: int) -> pl.Series:
    """Decimal strings or nulls with at most `digits` significant digits, rounded half to even.

    `digits` is from 1 to 18. Results are as in rule 2.7.
    """
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
    return values.clone().scatter(cut["row"], cut.with_columns(_ROUNDED, _LEFT).select(_PLAIN).to_series())


def _length(column: pl.Expr) -> pl.Expr:
    return column.str.len_bytes().cast(pl.Int64)


def _up() -> pl.Expr:
    """1 where the last kept digit is rounded up (above a half, or at a half if the digit is odd), else 0."""
    rest = pl.col("rest")
    odd = pl.col("kept").str.tail(1).is_in(["1", "3", "5", "7", "9"])
    # Digits after a decimal point sort as strings just as the fractions do.
    return (pl.when(odd).then(rest >= "5").otherwise(rest.str.strip_chars_end("0") > "5")).cast(pl.Int64)


def _plain() -> pl.Expr:
    """The number in `rounded` with the last `left` digits after the point, without trailing zeros there."""
    number, left = pl.col("rounded"), pl.col("left")
    integer = number.str.pad_end(_length(number) - left.clip(upper_bound=0), "0")
    # At least one digit before the point.
    padded = number.str.zfill(left.clip(0) + 1)
    point = _length(padded) - left.clip(0)
    fractional = padded.str.head(point) + "." + padded.str.slice(point)
    fractional = fractional.str.strip_chars_end("0").str.strip_chars_end(".")
    sign = pl.when(pl.col("decimal").str.starts_with("-")).then(pl.lit("-")).otherwise(pl.lit(""))
    return sign + pl.when(left > 0).then(fractional).otherwise(integer)


# Built once, because building expressions is slow. `places` counts the digits after the point; `digits` are all digits
# without leading zeros.
_PLACES = (_length(pl.col("decimal")) - pl.col("decimal").str.find(".", literal=True) - 1).fill_null(0).alias("places")
_DIGITS = (
    pl.col("decimal")
    .str.strip_prefix("-")
    .str.replace(".", "", literal=True)
    .str.strip_chars_start("0")
    .alias("digits")
)
_ROUNDED = (pl.col("kept").cast(pl.Int64) + _up()).cast(pl.String).alias("rounded")
_LEFT = (pl.col("places") - _length(pl.col("rest"))).alias("left")
_PLAIN = _plain()
