"""Reads numbers as people write them: 1234.5, 1,234.50, $1 234.50, 1.234,50, 5.2 %.

What could be read in two ways, such as 1,234, is marked, unless the rules say which mark separates decimals.
"""

from dataclasses import dataclass
from enum import StrEnum

import polars as pl

from analytics_service.market.kinds import DECIMAL

_SPACES = r"[ \x{a0}\x{202f}'\x{2019}]"
_EXPONENT = r"(?:[eE][+-]?[0-9]{1,9})?"
_PLAIN = rf"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+){_EXPONENT}$"
_GROUPED = rf"^[+-]?([1-9][0-9]{{0,2}}(,[0-9]{{3}})+|[0-9]{{1,3}}({_SPACES}[0-9]{{3}})+)(\.[0-9]*)?$"
_COMMA_PLAIN = rf"^[+-]?([0-9]+,?[0-9]*|,[0-9]+){_EXPONENT}$"
_COMMA_GROUPED = rf"^[+-]?([1-9][0-9]{{0,2}}(\.[0-9]{{3}})+|[0-9]{{1,3}}({_SPACES}[0-9]{{3}})+)(,[0-9]*)?$"
_SPACED = rf"^[+-]?[0-9]{{1,3}}({_SPACES}[0-9]{{3}})+$"
_EITHER = r"^[+-]?[1-9][0-9]{0,2},[0-9]{3}$"


class Mark(StrEnum):
    """The mark that separates decimals."""

    POINT = "."
    COMMA = ","


class NumberStyle(StrEnum):
    """How a number is written, if that matters for how others are to be read."""

    COMMA = "decimal comma"
    EITHER = "decimal comma or thousands"
    GROUPED = "thousands"
    SPACED = "thousands after a space"


# The first pattern that a number fits tells its shape.
_SHAPES = (
    (_PLAIN, None),
    (_EITHER, NumberStyle.EITHER),
    (_SPACED, NumberStyle.SPACED),
    (_GROUPED, NumberStyle.GROUPED),
    (f"{_COMMA_PLAIN}|{_COMMA_GROUPED}", NumberStyle.COMMA),
)


@dataclass(frozen=True, slots=True)
class NumberRules:
    """How numbers are to be read: the mark that separates decimals, None if nobody said which; and whether they are in
    percent. A number with the sign % always is."""

    mark: Mark | None = None
    percent: bool = False


def read_numbers(texts: pl.Series, rules: NumberRules) -> pl.DataFrame:
    """Columns of each text: `value` (DECIMAL, null if it is no number below 10^20), `large` (whether it is a number,
    but not below 10^20), `shape` (of Shape), and `percent` (whether it has the sign). Where nobody said which mark
    separates decimals, a comma separates thousands; the shape tells where it may not."""
    plainly = texts.str.strip_chars().cast(DECIMAL, strict=False)
    if rules.mark is not Mark.COMMA and not rules.percent and not plainly.null_count():
        no = pl.lit(value=False)
        return plainly.to_frame("value").with_columns(large=no, shape=pl.lit(None, pl.String), percent=no)
    text = pl.col("text").str.strip_chars().str.replace(r"^([+-]?)\$\s*", "$1").str.replace(r"^([+-]?)\s*", "$1")
    rows = pl.DataFrame({"text": texts}).select(text=text)
    rows = rows.with_columns(percent=pl.col("text").str.ends_with("%"))
    rows = rows.with_columns(text=pl.col("text").str.strip_suffix("%").str.strip_chars_end())
    plain = pl.when(_is_readable(rules.mark)).then(_with_point(rules.mark))
    rows = rows.with_columns(plain=plain, shape=_shape(rules.mark))
    scaled = pl.when(pl.col("percent") | rules.percent).then(_hundredth()).otherwise("plain")
    value = scaled.cast(DECIMAL, strict=False)
    large = value.is_null() & pl.col("plain").is_not_null()
    return rows.select(value=value, large=large, shape="shape", percent="percent")


def _is_readable(mark: Mark | None) -> pl.Expr:
    text = pl.col("text")
    if mark is Mark.COMMA:
        return text.str.contains(_COMMA_PLAIN) | text.str.contains(_COMMA_GROUPED)
    return text.str.contains(_PLAIN) | text.str.contains(_GROUPED)


def _with_point(mark: Mark | None) -> pl.Expr:
    """The number without marks of thousands, and with a decimal point."""
    text = pl.col("text").str.replace_all(_SPACES, "")
    if mark is Mark.COMMA:
        return text.str.replace_all(".", "", literal=True).str.replace(",", ".", literal=True)
    return text.str.replace_all(",", "", literal=True)


def _shape(mark: Mark | None) -> pl.Expr:
    """The shape of numbers with commas or with several points, where nobody said which mark separates decimals."""
    text, shape = pl.col("text"), pl.lit(None, pl.String)
    for pattern, meaning in reversed(_SHAPES) if mark is None else ():
        shape = pl.when(text.str.contains(pattern)).then(pl.lit(meaning, pl.String)).otherwise(shape)
    return shape


def _hundredth() -> pl.Expr:
    """The number divided by a hundred, by its exponent, so that no digit is lost."""
    mantissa = pl.col("plain").str.extract(r"^([^eE]*)")
    exponent = pl.col("plain").str.extract(r"[eE](.*)$").cast(pl.Int32).fill_null(0) - 2
    return pl.format("{}e{}", mantissa, exponent)
