"""Which assets a source lists, and when the others ended."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from analytics_service.market.assets import Asset, AssetGroup
from analytics_service.market.listing import LISTED, redefined

DAY, HOUR = timedelta(days=1), timedelta(hours=1)
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
A = Asset(AssetGroup.NATIVE, "a", "A", "A", "ua", 6, 2)
B = Asset(AssetGroup.NATIVE, "b", "B", "B", "ub", 6, 2)
LISTED_A, LISTED_B = replace(A, listed_until=LISTED), replace(B, listed_until=LISTED)
IMPORTED = replace(B, name="imported")


def ended(asset: Asset, until: datetime, at: datetime | None = None) -> Asset:
    return replace(asset, listed_until=until, ended_at=at)


def after(stored: Sequence[Asset], *listings: tuple[datetime, list[Asset]], newest: datetime | None) -> list[object]:
    return shown(redefined({asset.id: asset for asset in stored}, listings, newest, DAY))


def shown(assets: Sequence[Asset]) -> list[object]:
    """Everything about assets; their ends are not compared otherwise."""
    return [(asset, asset.listed_until, asset.ended_at) for asset in assets]


@pytest.mark.parametrize(
    ("stored", "listing", "changed"),
    [
        ([], [A, B], [LISTED_A, LISTED_B]),
        ([LISTED_A, LISTED_B], [A, B], []),
        # Missing for the first time: it was listed in the snapshot before, an hour ago.
        ([LISTED_A, LISTED_B], [A], [ended(B, NOON - HOUR)]),
        ([LISTED_A, ended(B, NOON - DAY + HOUR)], [A], []),
        ([LISTED_A, ended(B, NOON - DAY)], [A], [ended(B, NOON - DAY, NOON - DAY)]),
        ([LISTED_A, ended(B, NOON - DAY, NOON - DAY)], [A], []),
        # What an operator said stays, until it is listed again.
        ([LISTED_A, ended(B, NOON - DAY, NOON - HOUR)], [A], []),
        ([LISTED_A, ended(B, NOON - DAY, NOON - DAY)], [A, B], [LISTED_B]),
        # No source has listed it.
        ([LISTED_A, IMPORTED], [A], []),
        ([LISTED_A, replace(IMPORTED, ended_at=NOON)], [A], []),
        ([LISTED_A, IMPORTED], [A, B], [LISTED_B]),
        # A source that lists nothing says nothing.
        ([LISTED_A, LISTED_B], [], []),
    ],
)
def test_a_snapshot_tells_which_assets_go_on(stored: list[Asset], listing: list[Asset], changed: list[Asset]) -> None:
    assert after(stored, (NOON, listing), newest=NOON - HOUR if stored else None) == shown(changed)


def test_an_asset_that_is_gone_within_a_backfill_ended_when_it_was_listed_last() -> None:
    days = [NOON + number * DAY for number in range(4)]
    listings = [(days[0], [A, B]), (days[1], [A, B]), (days[2], [A]), (days[3], [A])]
    assert after([], *listings, newest=None) == shown([LISTED_A, ended(B, days[1], days[1])])
    assert after([LISTED_A, LISTED_B], *listings[1:3], newest=NOON - HOUR) == shown([ended(B, days[1], days[1])])


@pytest.mark.parametrize(
    ("stored", "changed"),
    [
        # An asset of the past only, and what goes on listing it while a backfill proceeds.
        ([LISTED_A], [ended(B, NOON)]),
        ([LISTED_A, ended(B, NOON - HOUR)], [ended(B, NOON)]),
        ([LISTED_A, ended(B, NOON - HOUR, NOON - HOUR)], [ended(B, NOON, NOON)]),
        # None of the others changes.
        ([LISTED_A, LISTED_B], []),
        ([LISTED_A, ended(B, NOON + HOUR, NOON + HOUR)], []),
        ([LISTED_A, ended(B, NOON - HOUR, NOON - DAY)], [ended(B, NOON, NOON - DAY)]),
        ([LISTED_A, IMPORTED], []),
    ],
)
def test_a_snapshot_of_the_past_neither_revives_nor_redefines(stored: list[Asset], changed: list[Asset]) -> None:
    assert after(stored, (NOON, [replace(A, name="old"), B]), newest=NOON + 7 * DAY) == shown(changed)
