"""Which assets a source lists, and when the others ended."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from analytics_service.market.assets import LISTED, Asset, AssetGroup, Definition, redefined

DAY, HOUR = timedelta(days=1), timedelta(hours=1)
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
A = Asset(AssetGroup.NATIVE, "a", "A", "A", "ua", 6, 2)
B = Asset(AssetGroup.NATIVE, "b", "B", "B", "ub", 6, 2)
LISTED_A, LISTED_B = replace(A, listed_until=LISTED), replace(B, listed_until=LISTED)
IMPORTED = replace(B, name="imported")


def ended(asset: Asset, until: datetime, at: datetime | None = None) -> Asset:
    return replace(asset, listed_until=until, ended_at=at)


def after(stored: Sequence[Asset], *listings: tuple[datetime, list[Asset]], newest: datetime | None) -> list[object]:
    return shown([asset for _, asset in redefined({asset.id: asset for asset in stored}, listings, newest, DAY)])


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


# Snapshots of one day after the other; A was renamed on the third.
DAYS = [NOON + number * DAY for number in range(6)]
OLD = replace(A, symbol="OLD")


def filled(stored: Sequence[Definition], complete: Sequence[int], **listed: Asset) -> list[Definition]:
    """The definitions of an asset that snapshots of the past add, by the number of their day. Beside them are others,
    the last of which is the newest."""
    listings = [(DAYS[int(day[1:])], [asset]) for day, asset in listed.items()]
    (_, present), known = stored[-1], {A.id: stored}
    return redefined({A.id: present}, listings, DAYS[complete[-1]], DAY, known, [DAYS[day] for day in complete])


def test_an_asset_that_is_renamed_within_a_backfill_has_both_symbols() -> None:
    listings = [(day, [OLD if number < 2 else A]) for number, day in enumerate(DAYS)]
    assert redefined({}, listings, None, DAY) == [(DAYS[0], OLD), (DAYS[2], A)]
    # After snapshots that have the old symbol.
    assert redefined({A.id: OLD}, listings[1:], DAYS[0], DAY) == [(DAYS[2], A)]


@pytest.mark.parametrize(
    ("stored", "complete", "listed", "added"),
    [
        # Before the first definition, where nothing is to be said until the name is another.
        ([(DAYS[5], LISTED_A)], [5], {"d3": A, "d4": A}, []),
        ([(DAYS[5], LISTED_A)], [5], {"d0": OLD, "d1": OLD, "d2": A}, [(0, OLD), (2, A)]),
        # The next snapshot shows what it did, whether it is the newest or not.
        ([(DAYS[5], LISTED_A)], [5], {"d0": OLD, "d1": OLD}, [(0, OLD)]),
        ([(DAYS[3], LISTED_A)], [3, 5], {"d0": OLD, "d4": OLD}, [(0, OLD), (4, OLD), (5, A)]),
        # Between definitions that are right already, also while an import's holds before all.
        ([(DAYS[0], OLD), (DAYS[2], LISTED_A)], [0, 2], {"d1": OLD}, []),
        ([(DAYS[0], OLD), (DAYS[3], LISTED_A)], [0, 3], {"d1": OLD, "d2": A}, [(2, A)]),
        ([(datetime.fromtimestamp(0, UTC), LISTED_A)], [5], {"d1": OLD}, [(1, OLD), (5, A)]),
        # Taken again: what was wrong is right, and what follows stays.
        ([(DAYS[0], OLD), (DAYS[2], LISTED_A)], [0, 2], {"d0": A, "d1": A}, [(0, A)]),
        ([(DAYS[0], LISTED_A)], [5], {"d0": OLD, "d1": OLD, "d2": A}, [(0, OLD), (2, A)]),
    ],
)
def test_a_past_that_is_filled_in_has_its_own_definitions(
    stored: Sequence[Definition], complete: Sequence[int], listed: dict[str, Asset], added: list[tuple[int, Asset]]
) -> None:
    found = filled(stored, complete, **listed)
    assert found == [(DAYS[day], asset) for day, asset in added]
    assert all(asset.listed_until == LISTED for _, asset in found)


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
    ],
)
def test_a_snapshot_of_the_past_revives_no_asset(stored: list[Asset], changed: list[Asset]) -> None:
    assert after(stored, (NOON, [A, B]), newest=NOON + 7 * DAY) == shown(changed)
