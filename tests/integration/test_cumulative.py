"""Cumulative histories never fall: snapshots go on from imported sums, and what would be lower is refused."""

from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.errors import UserError
from analytics_service.market.events import Action, Event, Sum, Totals
from analytics_service.market.instants import multiples_between
from analytics_service.store.datasets.histories import HISTORIES
from analytics_service.store.datasets.sums import Loans, read_loans
from jobs.registry import JOBS
from jobs.runner import backfill, take_snapshot
from tests.integration import imports
from tests.integration.handmade import HUGE, NOON, HandMade, market

JOB = JOBS["loans"]
MINUTE = timedelta(minutes=1)
SECOND = int(NOON.timestamp())
LOANS_FILES = next(history for history in HISTORIES if history.slug == "loans-originated")
A, B = "token;0xa", "token;0xb"
MARKETS = [market(A, apr="0.1"), market(B, apr="0.1")]


def event(minutes: float, usd: str, asset_id: str = A) -> Event:
    """An event some minutes after noon."""
    return Event(f"{minutes}", Action.BORROW, asset_id, "0xabc", NOON + minutes * MINUTE, HUGE, Decimal(usd))


def source(*events: Event) -> HandMade:
    return HandMade(markets_=MARKETS, events_=list(events))


def loans(source: HandMade, store: Store, minutes: int) -> Loans:
    """The loans in the snapshot of some minutes after noon."""
    take_snapshot(JOB, source, store, NOON + minutes * MINUTE)
    return read_loans(store, SECOND + 60 * minutes)


def bring(store: Store, folder: Path, *rows: tuple[str, int, str], name: str = "loans.csv") -> None:
    """Import loans originated: asset, minutes after noon and value of each. The sum over all assets has no name."""
    path = folder / name
    header, *lines = ("asset,time,value", *(f"{asset},{SECOND + 60 * minute},{value}" for asset, minute, value in rows))
    if not any(asset for asset, _, _ in rows):
        header, lines = header.removeprefix("asset,"), [line.removeprefix(",") for line in lines]
    path.write_text("\n".join([header, *lines]) + "\n")
    request = imports.asked(LOANS_FILES, path, assets=imports.assets_file(folder))
    imports.import_files(store, request, NOON, imports.Progress())


def stored(settings: Settings, asset_id: str = "") -> list[tuple[int, object]]:
    """All loans of an asset: minutes after noon and value."""
    condition = f"history = 'loans_originated' AND asset_id = '{asset_id}'"
    rows = imports.query(
        settings,
        f"SELECT (toUnixTimestamp(observed_at) - {SECOND}) / 60, value FROM observation FINAL WHERE {condition} "
        "ORDER BY observed_at",
    )
    return [(int(str(minute)[:-2]), value) for minute, value in rows]


def test_sums_go_on_from_the_last_imported_value_of_each_series(store: Store, tmp_path: Path) -> None:
    """Events up to a series' last imported second are in that value; later ones are added."""
    bring(store, tmp_path, (A, -11, "200"), (A, -10, "300"), (B, -8, "184"))
    bring(store, tmp_path, ("", -11, "400"), ("", -8, "489"), name="total.csv")
    at_source = source(event(-20, "1"), event(-9, "5"), event(-8, "7", B), event(-5, "20", B), event(0.5, "3"))
    assert loans(at_source, store, 0) == Loans(Decimal(509), {A: Decimal(305), B: Decimal(204)})
    assert loans(at_source, store, 1) == Loans(Decimal(512), {A: Decimal(308), B: Decimal(204)})


def test_an_import_of_the_total_leaves_assets_to_the_source(store: Store, tmp_path: Path) -> None:
    bring(store, tmp_path, ("", -10, "484000000"))
    assert loans(source(event(-20, "1"), event(-5, "800000")), store, 0) == Loans(
        Decimal(484_800_000), {A: Decimal(800_001), B: Decimal(0)}
    )


def test_a_total_that_was_not_imported_is_the_sum_over_assets(store: Store, tmp_path: Path) -> None:
    bring(store, tmp_path, (A, -10, "300"))
    assert loans(source(event(-5, "20"), event(-4, "4", B)), store, 0).total == 324


def test_values_imported_after_a_snapshot_are_gone_on_from(store: Store, settings: Settings, tmp_path: Path) -> None:
    """A source was away for some minutes. A backfill of them goes from one imported value to the next."""
    at_source = source(event(-5, "20"), event(1.5, "2"), event(3.5, "8"))
    loans(at_source, store, 0)
    bring(store, tmp_path, ("", 1, "50"), ("", 3, "60"))
    assert loans(at_source, store, 4).total == 68
    assert backfill(JOB, at_source, store, multiples_between(NOON, NOON + 5 * MINUTE, MINUTE)) == 3
    # That of minutes 1 and 3 is the imported one.
    assert [value for _, value in stored(settings)] == [20, 50, 52, 60, 68]


def test_an_imported_past_is_that_of_a_source_whose_events_exceed_it(
    store: Store, settings: Settings, tmp_path: Path
) -> None:
    bring(store, tmp_path, (A, -1, "484"))
    assert loans(source(event(-8, "500"), event(-0.5, "1")), store, 0) == Loans(
        Decimal(501), {A: Decimal(485), B: Decimal(0)}
    )
    assert stored(settings, A) == [(-1, 484), (-0, 485)]


def test_events_above_a_value_imported_for_later_are_refused(store: Store, tmp_path: Path) -> None:
    at_source = source(event(-5, "20"), event(2, "100"))
    loans(at_source, store, 0)
    bring(store, tmp_path, ("", 3, "50"))
    with pytest.raises(UserError, match=r"would be 120 USD before .* an import has 50 then, 70 less"):
        loans(at_source, store, 4)


def test_a_source_that_states_less_is_refused_with_the_offset(store: Store, tmp_path: Path) -> None:
    class Stating(HandMade):
        def totals(self, at: datetime) -> Totals:
            return Totals(Sum(self.usd, {A: self.usd}))

        usd = Decimal(300)

    bring(store, tmp_path, (A, -10, "484"))
    at_source = Stating(markets_=MARKETS)
    with pytest.raises(UserError, match=r"of all assets must not decrease: .* 300 USD .* 184 less than the 484 stored"):
        loans(at_source, store, 0)
    at_source.usd = Decimal(500)
    assert loans(at_source, store, 1).total == 500
    at_source.usd = Decimal(499)
    with pytest.raises(UserError, match=r"of all assets must not decrease: .* 1 less than the 500 stored"):
        loans(at_source, store, 2)


def test_an_import_that_would_fall_is_refused_with_the_difference(
    store: Store, settings: Settings, tmp_path: Path
) -> None:
    """Within itself, after what the store has, and before it: 20 five minutes before noon."""
    at_source = source(event(-5, "20"))
    loans(at_source, store, 0)
    within = [(A, 1, "30"), (B, 1, "9"), (A, 2, "29.5")]
    after, before = [(A, 3, "19")], [(A, -9, "12"), (A, -6, "21")]
    for rows, reason in (
        (within, f"of {A} would fall from 30 USD .* in the file to 29.5 USD .* in the file, by 0.5"),
        (after, f"of {A} would fall from 20 USD .* in the store to 19 USD .* in the file, by 1"),
        (before, f"of {A} would fall from 21 USD .* in the file to 20 USD .* in the store, by 1"),
    ):
        with pytest.raises(UserError, match=reason):
            bring(store, tmp_path, *rows)
        assert stored(settings, A) == [(-5, 20)]


def test_an_import_may_correct_what_the_store_has(store: Store, settings: Settings, tmp_path: Path) -> None:
    """The values that it replaces do not count."""
    bring(store, tmp_path, (A, 1, "10"), (A, 2, "20"), (A, 3, "30"))
    bring(store, tmp_path, (A, 1, "1"), (A, 2, "2"), (A, 3, "3"), name="lower.csv")
    assert stored(settings, A) == [(1, 1), (2, 2), (3, 3)]
