"""Numbers in files of histories. The oracle is Decimal."""

from decimal import ROUND_HALF_EVEN, Context, Decimal

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from analytics_service.imports.numerals import Mark, NumberRules, NumberStyle, read_numbers

AS_WRITTEN = NumberRules()
POINT, COMMA = NumberRules(Mark.POINT), NumberRules(Mark.COMMA)
EXACT = Context(prec=400, rounding=ROUND_HALF_EVEN)
DIGITS = st.text("0123456789", min_size=1, max_size=45)


def read(text: str, rules: NumberRules = AS_WRITTEN) -> tuple[Decimal | None, NumberStyle | None]:
    row = read_numbers(pl.Series([text], dtype=pl.String), rules).row(0, named=True)
    return row["value"], row["shape"]


def stored(text: str, exponent: int = 0) -> Decimal | None:
    """The number with 18 decimals, half to even; None if that is not below 10^20."""
    value = Decimal(text).scaleb(exponent, EXACT).quantize(Decimal("1e-18"), context=EXACT)
    return value if value.copy_abs() < 10**20 else None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1234.5", "1234.5"),
        (" +.5 ", "0.5"),
        ("5.", "5"),
        ("$1.50", "1.5"),
        ("-$ 1.50", "-1.5"),
        ("1e-18", "0.000000000000000001"),
        ("5e-19", "0"),
        ("1.5e-18", "0.000000000000000002"),
        ("2.5E-18", "0.000000000000000002"),
        ("99999999999999999999", "99999999999999999999"),
        ("5 %", "0.05"),
        ("1e2%", "1"),
    ],
)
def test_a_plain_number_is_read_exactly(text: str, value: str) -> None:
    assert read(text) == (Decimal(value), None)


@pytest.mark.parametrize(
    ("text", "shape", "with_point", "with_comma"),
    [
        ("1,234", NumberStyle.EITHER, "1234", "1.234"),
        ("1,234.5", NumberStyle.GROUPED, "1234.5", None),
        ("1,234,567", NumberStyle.GROUPED, "1234567", None),
        ("1 234 567", NumberStyle.SPACED, "1234567", "1234567"),
        ("1 234.5", NumberStyle.GROUPED, "1234.5", None),
        ("1\u2019234\u2019567", NumberStyle.SPACED, "1234567", "1234567"),
        ("1,5", NumberStyle.COMMA, None, "1.5"),
        ("1.234,5", NumberStyle.COMMA, None, "1234.5"),
        ("1.234.567", NumberStyle.COMMA, None, "1234567"),
        ("1\u202f234,5", NumberStyle.COMMA, None, "1234.5"),
        ("0,123", NumberStyle.COMMA, None, "0.123"),
        ("12,34,567", None, None, None),
    ],
)
def test_marks_are_read_as_the_rules_say_and_noted_without_rules(
    text: str, shape: NumberStyle | None, with_point: str | None, with_comma: str | None
) -> None:
    assert read(text)[1] == shape
    assert read(text, POINT)[0] == (with_point and Decimal(with_point))
    assert read(text, COMMA)[0] == (with_comma and Decimal(with_comma))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "NaN",
        "null",
        "N/A",
        "inf",
        "-",
        "--5",
        "+-5",
        ".",
        "1e",
        "0x10",
        "1_000",
        "١٢",
        "½",
        "\u22121",
        "(5)",
        "€5",
        "5 USD",
        "1.2M",
        "1.2.3",
        "1 23",
        "\\N",
        "true",
        "=1",
        "1e5000",
    ],
)
def test_what_is_no_number_for_certain_is_no_number(text: str) -> None:
    assert [read(text, rules)[0] for rules in (AS_WRITTEN, POINT, COMMA)] == [None] * 3


@given(st.sampled_from(["", "-", "+"]), DIGITS, DIGITS, st.integers(-60, 25) | st.none(), st.booleans())
@example("", "99999999999999999999", "9999999999999999995", None, False)
@example("", "0", "0000000000000000005000000000000000000000000001", None, False)
@example("-", "0", "0000000000000000015", None, False)
@example("", "1", "5", -18, True)
def test_any_number_is_rounded_once_and_half_to_even(
    sign: str, whole: str, decimals: str, exponent: int | None, percent: bool
) -> None:
    text = f"{sign}{whole}.{decimals}" + ("" if exponent is None else f"e{exponent}")
    expected = stored(text, -2 if percent else 0)
    rows = read_numbers(pl.Series([text + "%" * percent]), AS_WRITTEN)
    assert rows["value"].item() == expected
    assert rows["large"].item() == (expected is None)
    comma = read_numbers(pl.Series([text.replace(".", ",")]), NumberRules(Mark.COMMA, percent))
    assert comma["value"].item() == expected


@given(st.integers(-(10**20) + 1, 10**20 - 1), DIGITS)
def test_thousands_change_no_number(whole: int, decimals: str) -> None:
    expected = stored(f"{whole}.{decimals}")
    assert read(f"{whole:,}.{decimals}", POINT)[0] == expected
    assert read(f"{whole:,}.{decimals}".translate({ord(","): ".", ord("."): ","}), COMMA)[0] == expected
