"""Sources that cannot give everything, as `up` serves them."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import falcon.testing
import pytest

from analytics_service.app import create_app
from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.errors import SourceError
from analytics_service.market.assets import Asset
from analytics_service.market.instants import unix_second
from analytics_service.market.markets import NO_CONFIG, GlobalConfig, LendMarket, Market
from analytics_service.market.prices import Price
from analytics_service.server.past import fill_past_beside
from analytics_service.sources.base import Source
from analytics_service.state.health import FILLING
from jobs.registry import JOBS
from jobs.runner import take_snapshot
from tests.doubles import FirstHeads
from tests.integration.handmade import ASSETS, CONFIG, market
from tests.integration.imports import query
from tests.processes import until

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


def test_a_protocol_without_a_token_positions_and_swaps_is_served(settings: Settings, store: Store) -> None:
    for job in JOBS.values():
        take_snapshot(job, Minimal(), store, NOON)
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


def test_a_past_that_is_being_filled_in_is_said_and_not_cached_for_a_day(
    settings: Settings, store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    filling = tmp_path / "filling"
    filling.touch()
    monkeypatch.setenv(FILLING, str(filling))
    for at in (NOON, NOON + timedelta(hours=1)):
        take_snapshot(JOBS["prices"], Minimal(), store, at)
    client = falcon.testing.TestClient(create_app(settings, store, heads=FirstHeads(store)))
    page = f"/api/v1/assets/price-history?start={unix_second(NOON)}&end={unix_second(NOON) + 60}&period=h"
    assert client.simulate_get("/api/v1/status/health").json["data"]["filling"] is True
    assert client.simulate_get(page).headers["cache-control"] == "public, max-age=1"
    filling.unlink()
    assert client.simulate_get("/api/v1/status/health").json["data"]["filling"] is False
    assert client.simulate_get(page).headers["cache-control"] == "public, max-age=86400"


class Forgetful(Minimal):
    """Has two hours of history, but markets only of the hour in which it was opened and later ones."""

    history = timedelta(hours=2)

    def __init__(self) -> None:
        self.begin = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)

    def markets(self, at: datetime) -> Sequence[Market]:
        if at < self.begin:
            raise SourceError("The node is pruned.")
        return super().markets(at)


def test_a_past_that_a_source_does_not_know_is_told_and_costs_no_other_dataset(
    settings: Settings, store: Store, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    source, filling = Forgetful(), tmp_path / "filling"
    for job in JOBS.values():
        take_snapshot(job, source, store, datetime.now(UTC))
    filling.touch()
    with fill_past_beside(settings, source, filling):
        until(lambda: not filling.exists())
    told = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert [line.partition(" It was asked for ")[0] for line in told] == [
        f"{name}: its past could not be filled in. The node is pruned." for name in ("rates", "markets")
    ]
    assert all(" 1 of 2 snapshots " in line for line in told)
    taken = query(settings, "SELECT dataset, count() FROM snapshot WHERE kind = 'backfill' GROUP BY dataset")
    assert dict(taken) == {name: 1 if name in ("rates", "markets") else 2 for name in JOBS}
