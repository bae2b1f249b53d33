"""Significant digits of decimal texts, against the standard library's decimals."""

from decimal import ROUND_HALF_EVEN, Context, Decimal

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from analytics_service.history.digits import MAX_DIGITS, rounded
from tests import oracle


@given(
    values=st.lists(
        st.none()
        | st.decimals(allow_nan=False, allow_infinity=False, places=18, min_value=-(10**30), max_value=10**30)
        | st.builds(lambda number, places: Decimal(number).scaleb(-places), st.integers(0, 10**7), st.integers(0, 18)),
        max_size=20,
    ),
    digits=st.integers(1, MAX_DIGITS),
)
@example(values=[Decimal("0.5"), Decimal("-0.95"), Decimal("999999999999999999.5")], digits=1)
@example(values=[Decimal("999999999999999999.5"), Decimal("9.999999999999999995")], digits=18)
def test_values_are_rounded_as_decimals_are(values: list[Decimal | None], digits: int) -> None:
    context = Context(prec=digits, rounding=ROUND_HALF_EVEN)
    texts = [None if one is None else oracle.text(one) for one in values]
    expected = [None if one is None else oracle.text(context.create_decimal(one)) for one in texts]
    assert rounded(pl.Series(texts, dtype=pl.String), digits).to_list() == expected


@pytest.mark.parametrize(
    ("text", "digits", "expected"),
    [
        ("1234.5", 2, "1200"),
        ("0.00012345", 2, "0.00012"),
        ("125", 2, "120"),
        ("135", 2, "140"),
        ("1.25000000000000000001", 2, "1.3"),
        ("-99.96", 3, "-100"),
        ("99999", 1, "100000"),
        ("0", 1, "0"),
        ("1250000", 3, "1250000"),
        ("10.04", 3, "10"),
    ],
)
def test_a_half_goes_to_the_even_digit_and_no_zeros_are_left_behind_the_point(
    text: str, digits: int, expected: str
) -> None:
    assert rounded(pl.Series([text]), digits).to_list() == [expected]
