"""Cumulative values of an asset that was there twice: what both have brought in, and what its source states."""

from collections.abc import Mapping
from decimal import Decimal

import polars as pl
import pytest

from analytics_service.store.datasets.asset_merge import added_up

USD = pl.Decimal(38, 18)
Values = Mapping[int, int]


def series(imported: Values, summed: Values) -> pl.DataFrame:
    rows = [(at, Decimal(usd), values is imported) for values in (imported, summed) for at, usd in values.items()]
    schema = {"observed_at": pl.UInt32, "value": USD, "is_imported": pl.Boolean}
    return pl.DataFrame(rows, schema, orient="row").sort("observed_at")


@pytest.mark.parametrize(
    ("old", "new", "events", "both"),
    [
        pytest.param(
            ({}, {10: 5, 20: 5, 30: 5}), ({}, {20: 0, 30: 7}), {10: 5, 25: 12}, {10: 5, 20: 5, 30: 12}, id="events"
        ),
        pytest.param(
            ({10: 400, 20: 484}, {}), ({}, {5: 1, 30: 4, 40: 6}), {4: 1, 15: 3, 25: 4, 35: 6},
            {10: 400, 20: 484, 30: 485, 40: 487}, id="imported, then events",
        ),
        pytest.param(
            ({10: 400, 20: 484}, {}), ({}, {30: 490, 40: 495}), {35: 2}, {10: 400, 20: 484, 30: 490, 40: 495},
            id="imported, then stated",
        ),
        pytest.param(
            ({10: 400, 20: 484}, {}), ({20: 480, 30: 500}, {}), {}, {10: 400, 20: 480, 30: 500}, id="both imported"
        ),
    ],
)  # fmt: skip
def test_values_of_two_assets_add_up(
    old: tuple[Values, Values], new: tuple[Values, Values], events: Values, both: Values
) -> None:
    schema = {"observed_at": pl.UInt32, "events": USD}
    sums = pl.DataFrame([(at, Decimal(usd)) for at, usd in events.items()], schema, orient="row")
    rows = added_up(series(*old), series(*new), sums)
    assert dict(rows.select("observed_at", "value").iter_rows()) == both
