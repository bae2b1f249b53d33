"""What `up` takes before it serves, of sources that cannot give everything."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import NoReturn

import falcon.testing
import pytest

from analytics_service.app import create_app
from analytics_service.clickhouse.connection import Store
from analytics_service.config.parsers import Intervals
from analytics_service.config.settings import Settings
from analytics_service.errors import DiskFull, OutOfRange, SourceError, SourceMismatch
from analytics_service.market.assets import Asset
from analytics_service.market.instants import unix_second
from analytics_service.market.markets import NO_CONFIG, GlobalConfig, LendMarket, Market
from analytics_service.market.positions import SwapContract
from analytics_service.market.prices import Price
from analytics_service.server.past import fill_past_beside, take_first_snapshots
from analytics_service.sources.base import Source
from analytics_service.store.ledger import read_heads
from jobs.registry import JOBS
from jobs.runner import take_snapshot
from tests.doubles import QUESTIONS, FirstHeads
from tests.integration.handmade import ASSETS, CONFIG, HandMade, market
from tests.processes import until

ALL = set(JOBS)
NOON = datetime(2025, 3, 1, 12, tzinfo=UTC)


class Minimal(Source):
    """Only what every source must have."""

    spec = "minimal"

    def assets(self, at: datetime) -> Sequence[Asset]:
        return ASSETS

    def prices(self, at: datetime) -> Sequence[Price]:
        return [Price("token;lend", at, Decimal(2))]

    def markets(self, at: datetime) -> Sequence[Market]:
        return [market("token;lend", LendMarket(Decimal(0), 10**6, 10**6))]

    def config(self, at: datetime) -> GlobalConfig:
        return CONFIG


class Failing(HandMade):
    """Has no swaps now."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    def swaps(self, at: datetime) -> Sequence[SwapContract]:
        raise self.error


class Broken(Failing):
    """Answers every question with an error."""

    def __getattribute__(self, name: str) -> object:
        if name in QUESTIONS:
            raise super().__getattribute__("error")
        return super().__getattribute__(name)


def test_a_protocol_without_a_token_positions_and_swaps_is_served(settings: Settings, store: Store) -> None:
    take_first_snapshots(settings, Minimal(), store)
    assert set(read_heads(store)) == ALL
    client = falcon.testing.TestClient(create_app(settings, store, heads=FirstHeads(store)))
    assert client.simulate_get("/readyz").status_code == 200
    flags = "with_text=true&with_value=true"
    user = f"/api/v1/users/0x{'a' * 40}/user"
    for path in ("/markets", "/ptoken/params", "/ptoken/state", "/ptoken/staking", "/analytics/market/state"):
        query = "" if "analytics" in path else flags
        assert client.simulate_get(f"/api/v1{path}", query_string=query).status_code == 200, path
    assert client.simulate_get(user, query_string=flags).status_code == 200


class Tokenless(Minimal):
    """Its rules name no protocol token."""

    def config(self, at: datetime) -> GlobalConfig:
        return NO_CONFIG


def test_a_protocol_without_a_token_is_not_asked_for_it(settings: Settings, store: Store) -> None:
    for name in ("prices", "markets", "positions"):
        take_snapshot(JOBS[name], Tokenless(), store, NOON)
    client = falcon.testing.TestClient(create_app(settings, store, heads=FirstHeads(store)))
    for at in ("", f"at={unix_second(NOON)}"):
        for path in (f"users/0x{'a' * 40}/user", "analytics/market/risk", "analytics/market/borrowers"):
            assert client.simulate_get(f"/api/v1/{path}", query_string=at).status_code == 200, path
        lacking = client.simulate_get("/api/v1/ptoken/state", query_string=at)
        assert "snapshot of ptoken" in lacking.json["error"]["message"]


class Listing(Minimal):
    """Has two hours of history, and remembers for which instants it was asked for prices."""

    history = timedelta(hours=2)

    def __init__(self) -> None:
        self.asked: list[datetime] = []

    def prices(self, at: datetime) -> Sequence[Price]:
        self.asked.append(at)
        return super().prices(at)


def test_snapshots_of_now_come_after_all_history(settings: Settings, store: Store) -> None:
    """Else the scheduler would miss the instants of the time that history takes."""
    source = Listing()
    take_first_snapshots(replace(settings, every=Intervals(prices=1, markets=1)), source, store)
    # Two hours of prices and of markets, each with its prices, and both of them now.
    assert len(source.asked) == 2 * 2 + 2
    assert max(source.asked[:4]) <= min(source.asked[4:])
    assert {at.minute * 60 + at.second for at in source.asked[:4]} == {0}


class Pruned(Minimal):
    """Has two hours of history, but no positions of then."""

    history = timedelta(hours=2)

    def positions(self, at: datetime) -> NoReturn:
        raise SourceError("The node is pruned.")


def test_a_past_of_positions_that_a_source_does_not_know_is_told_while_the_service_runs(
    settings: Settings, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    with fill_past_beside(settings, Pruned()):
        until(lambda: caplog.messages)
    (said,) = caplog.messages
    assert said.startswith("positions: its history could not be filled. The node is pruned. It was asked for ")
    assert " 2 of 2 snapshots " in said


def test_a_source_that_may_hang_keeps_nobody_from_what_is_there(settings: Settings, store: Store) -> None:
    take_first_snapshots(settings, HandMade(), store)
    store.execute("TRUNCATE TABLE snapshot")
    source = Listing()
    source.history = None
    take_first_snapshots(settings, source, store)
    assert source.asked == []


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (SourceError("The node answers 502."), "The node answers 502."),
        pytest.param(ConnectionError("refused"), "ConnectionError: refused.", marks=pytest.mark.slow),
        pytest.param(OutOfRange("7 is too much."), "7 is too much.", marks=pytest.mark.slow),
    ],
)
def test_what_a_source_cannot_give_is_left_to_the_scheduler(
    settings: Settings, store: Store, caplog: pytest.LogCaptureFixture, error: Exception, told: str
) -> None:
    take_first_snapshots(settings, Failing(error), store)
    assert set(read_heads(store)) == ALL - {"routes"}
    (said,) = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert said.startswith(f"routes: there is no current snapshot; the scheduler keeps trying. {told}")


def test_a_source_that_gives_nothing_is_an_error_unless_there_is_something_to_serve(
    settings: Settings, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    broken = Broken(ConnectionError("the node is down"))
    with pytest.raises(SourceError, match=r"^prices: there is no .* trying\. ConnectionError: the node is down\.$"):
        take_first_snapshots(settings, broken, store)
    take_first_snapshots(settings, HandMade(), store)
    # No snapshot is complete already, and yet there are heads.
    store.execute("TRUNCATE TABLE snapshot")
    broken.may_hang = False
    take_first_snapshots(settings, broken, store)
    assert "prices: there is no current snapshot" in caplog.text


def test_a_full_disk_keeps_nobody_from_what_is_there(
    settings: Settings, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    full = Broken(DiskFull("insert into observation"))
    with pytest.raises(DiskFull):
        take_first_snapshots(settings, full, store)
    take_first_snapshots(settings, HandMade(), store)
    store.execute("TRUNCATE TABLE snapshot")
    full.may_hang = False
    take_first_snapshots(settings, full, store)
    assert caplog.messages[-len(JOBS)] == (
        "prices: there is no current snapshot; the scheduler keeps trying. "
        "The disk of ClickHouse is full (insert into observation). Free space on it."
    )


class MadeUp(Minimal):
    """A simulation with a past, so that it is asked for instants that the store lacks."""

    spec = "simulated:1"
    simulated = True
    may_hang = False
    history = timedelta(hours=2)


def test_data_of_another_side_is_refused_whatever_the_store_has(settings: Settings, store: Store) -> None:
    take_first_snapshots(settings, HandMade(), store)
    with pytest.raises(SourceMismatch):
        take_first_snapshots(settings, MadeUp(), store)


class Forgetful(Minimal):
    """Has two hours of history, but markets only of the hour in which it was opened and later ones."""

    history = timedelta(hours=2)

    def __init__(self) -> None:
        self.begin = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)

    def markets(self, at: datetime) -> Sequence[Market]:
        if at < self.begin:
            raise SourceError("The node is pruned.")
        return super().markets(at)


def test_a_history_that_cannot_be_filled_costs_no_snapshot_of_now(
    settings: Settings, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    take_first_snapshots(settings, Forgetful(), store)
    assert set(read_heads(store)) == ALL
    told = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert [line.partition(" It was asked for ")[0] for line in told] == [
        f"{name}: its history could not be filled. The node is pruned." for name in ("rates", "markets")
    ]
    assert all(" 1 of 2 snapshots " in line for line in told)
