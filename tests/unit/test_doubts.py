"""Which values are in doubt."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from analytics_service.market.doubts import Doubtful, Limits, Observed, doubts_among

NOON = 1_772_366_400
MINUTE, DAY = 60, 86_400
LIMITS = Limits(timedelta(days=1), Decimal("2.5"))


def series(history: str, *values: str | None, every: int = MINUTE, since: int = NOON) -> list[Observed]:
    """Values from noon on, at a distance; None for one that is missing."""
    seconds = range(since, since + every * len(values), every)
    return [(history, "native;a", at, Decimal(value)) for at, value in zip(seconds, values, strict=True) if value]


def found(new: list[Observed], stored: list[Observed] | None = None) -> list[tuple[int, str]]:
    """What is in doubt: the seconds since noon, and why."""
    doubts = doubts_among(new, stored or [], LIMITS)
    return [(int(doubt.observed_at.timestamp()) - NOON, doubt.what) for doubt in doubts]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        # At the factor is not beyond it, in either direction.
        (["2", "5", "2"], []),
        (["2", "5.000000000000000001"], [(60, "jump")]),
        (["5", "1.999999999999999999"], [(60, "jump")]),
        # A spike is two jumps, and a value that is missing none.
        (["2", "200", "2"], [(60, "jump"), (120, "jump")]),
        (["2", None, None, "3"], []),
        # What follows a price of zero is compared with nothing.
        (["0", "0", "7"], [(0, "zero"), (60, "zero")]),
        (["7", "0", "0", "7", "0"], [(60, "zero"), (120, "zero"), (240, "zero")]),
        # Three times 10^20 has more digits than a decimal of the store.
        (["33333333333333333333", "99999999999999999999.9"], [(60, "jump")]),
    ],
)
def test_a_price_is_in_doubt_that_is_zero_or_jumps(values: list[str | None], expected: list[tuple[int, str]]) -> None:
    assert found(series("price", *values)) == expected


@pytest.mark.parametrize("history", ["tvl", "deposits_usd", "collateral_usd", "debt_usd"])
def test_a_total_is_in_doubt_that_falls_by_more_than_half(history: str) -> None:
    """However it rises, and however long ago the one before was."""
    assert found(series(history, "10", "5", "500", "0", "0", every=2 * DAY)) == [(6 * DAY, "fall")]
    assert found(series(history, "0.000000000000000003", "0.000000000000000001")) == [(60, "fall")]


def test_a_price_is_compared_with_one_of_at_most_a_day_before() -> None:
    assert found(series("price", "2", "20", every=DAY)) == [(DAY, "jump")]
    assert found(series("price", "2", "20", every=DAY + 1)) == []
    assert found(series("price", "0", "0", every=DAY + 1)) == [(0, "zero"), (DAY + 1, "zero")]


def test_only_new_values_are_in_doubt_each_after_the_one_before_it() -> None:
    """Stored ones lie before, between and after the new ones."""
    stored = series("tvl", "100", None, "60", None, "9")
    assert found(series("tvl", None, "40", None, "55"), stored) == [(60, "fall")]
    other = [("tvl", "native;b", NOON, Decimal(1000))]
    assert found(series("tvl", None, "40"), other) == []


def test_a_doubt_names_both_values() -> None:
    (jump,) = doubts_among(series("price", "2.50", "120"), [], LIMITS)
    words = "at 2026-03-01T12:01:00Z is 120, after 2.5 at 2026-03-01T12:00:00Z"
    assert (jump.words, replace(jump, symbol="A").words) == (f"price of native;a {words}", f"price of A {words}")
    (zero,) = doubts_among(series("price", "0"), [], LIMITS)
    assert zero.words == "price of native;a at 2026-03-01T12:00:00Z is 0"
    assert replace(zero, history="tvl", asset_id="").words == "tvl at 2026-03-01T12:00:00Z is 0"
    assert (zero.what, zero.before, zero.observed_at) == (Doubtful.ZERO, None, datetime(2026, 3, 1, 12, tzinfo=UTC))
