"""Significant digits of values, against the standard library's decimals."""

from decimal import ROUND_HALF_EVEN, Context, Decimal

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from analytics_service.errors import ParameterInvalid
from analytics_service.history.formats.base import MAX_DIGITS, decimal_strings, shorten_digits
from tests import oracle


@given(
    values=st.lists(
        st.none()
        | st.decimals(allow_nan=False, allow_infinity=False, places=18, min_value=-(9 * 10**19), max_value=9 * 10**19)
        | st.builds(lambda number, places: Decimal(number).scaleb(-places), st.integers(0, 10**7), st.integers(0, 18)),
        max_size=20,
    ),
    digits=st.integers(1, MAX_DIGITS),
)
@example(values=[Decimal("1.250000000000000001"), Decimal("125"), Decimal("135"), Decimal("10.04")], digits=2)
@example(values=[Decimal("0.5"), Decimal("-0.95"), Decimal("999999999999999999.5")], digits=1)
@example(values=[Decimal("999999999999999999.5"), Decimal("9.999999999999999995")], digits=18)
@example(values=[Decimal("-40850"), Decimal("-1445"), Decimal("413450")], digits=3)
def test_values_are_rounded_as_decimals_are(values: list[Decimal | None], digits: int) -> None:
    context = Context(prec=digits, rounding=ROUND_HALF_EVEN)
    texts = [None if one is None else oracle.text(one) for one in values]
    expected = [None if one is None else oracle.text(context.create_decimal(one)) for one in texts]
    shortened = shorten_digits(pl.DataFrame({"v": texts}, schema={"v": pl.String}), digits)
    assert decimal_strings(shortened["v"]).to_list() == expected


def test_a_value_that_is_rounded_beyond_the_greatest_number_is_refused() -> None:
    with pytest.raises(ParameterInvalid, match="use more digits") as caught:
        shorten_digits(pl.DataFrame({"v": ["99999999999999999999.9"]}), 7)
    assert caught.value.parameter == "digits"
