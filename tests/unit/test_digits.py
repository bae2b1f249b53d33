"""Significant digits of values, half to even, by hand."""

import polars as pl
import pytest

from analytics_service.errors import ParameterInvalid
from analytics_service.history.formats.base import decimal_strings, shorten_digits


@pytest.mark.parametrize(
    ("digits", "values", "expected"),
    [
        (1, ["0.5", "-0.95", "0.85", "999999999999999999.5"], ["0.5", "-1", "0.8", "1000000000000000000"]),
        (2, ["1.250000000000000001", "125", "135", "10.04", None], ["1.3", "120", "140", "10", None]),
        (
            3,
            ["-40850", "-1445", "413450", "0", "0.000000000000001235"],
            ["-40800", "-1440", "413000", "0", "0.00000000000000124"],
        ),
        (18, ["999999999999999999.5", "9.999999999999999995", "0.1"], ["1000000000000000000", "10", "0.1"]),
    ],
)
def test_values_are_rounded_half_to_even(digits: int, values: list[str | None], expected: list[str | None]) -> None:
    shortened = shorten_digits(pl.DataFrame({"v": values}, schema={"v": pl.String}), digits)
    assert decimal_strings(shortened["v"]).to_list() == expected


def test_numbers_are_rounded_and_counts_are_not() -> None:
    values = pl.DataFrame({"o": ["125"], "n": [125]}).with_columns(pl.col("o").cast(pl.Decimal(38, 18)))
    shortened = shorten_digits(values, 2)
    assert [decimal_strings(shortened["o"]).to_list(), shortened["n"].to_list()] == [["120"], [125]]


def test_a_value_that_is_rounded_beyond_the_greatest_number_is_refused() -> None:
    with pytest.raises(ParameterInvalid, match="use more digits") as caught:
        shorten_digits(pl.DataFrame({"v": ["99999999999999999999.9"]}), 7)
    assert caught.value.parameter == "digits"
