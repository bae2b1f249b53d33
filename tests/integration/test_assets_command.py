"""`analytics-service assets`, and what its changes do to files and requests."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import falcon.testing
import pytest
from click.testing import CliRunner

from analytics_service.app import create_app
from analytics_service.cli.main import cli
from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.errors import UserError
from analytics_service.market.assets import Asset, AssetGroup
from analytics_service.store.datasets.assets import read_assets
from jobs.registry import JOBS
from jobs.runner import take_snapshot
from tests.doubles import FreshHeads
from tests.integration import imports
from tests.integration.handmade import NOON, HandMade

SECOND = 1_735_689_600
DAY = 86_400
LISTED = Asset(AssetGroup.NATIVE, "luna", "Luna", "LUNA", "uluna", 6, 2)


@pytest.fixture
def command(settings: Settings, store: Store, tmp_path: Path) -> Any:
    """AAA has two daily values from 2025 on, BBB one; each command answers with its exit code and its output."""
    rows = [("AAA", SECOND, "1"), ("AAA", SECOND + DAY, "2"), ("BBB", SECOND, "3")]
    imports.run(store, imports.prices_file(tmp_path, rows))

    def run(*arguments: str) -> tuple[int, str]:
        result = CliRunner().invoke(cli, ["assets", *arguments], env=settings.to_environment({}))
        return result.exit_code, result.output

    return run


@pytest.fixture
def client(settings: Settings, store: Store) -> falcon.testing.TestClient:
    """One service, which keeps its answers: a command must make those that it changes again."""
    return falcon.testing.TestClient(create_app(settings, store, lambda: NOON, FreshHeads(store)))


def ask(client: falcon.testing.TestClient, path: str, query: str) -> falcon.testing.Result:
    return client.simulate_get(f"/api/v1/{path}", query_string=query)


def prices(client: falcon.testing.TestClient, symbol: str) -> Any:
    query = f"symbols={symbol}&start={SECOND}&end={SECOND + 2 * DAY}&period=d"
    answer = ask(client, "assets/price-history", query)
    if answer.status_code != 200:
        return answer.json["error"]["kind"]
    return [point["v"] for point in answer.json["data"]["series"][0]["points"]]


def test_an_end_is_that_of_the_last_value_or_as_said_and_can_be_undone(
    command: Any, client: falcon.testing.TestClient, store: Store, tmp_path: Path
) -> None:
    """Until then, values after it are refused."""
    assert prices(client, "BBB") == ["3", "3", None]
    assert command("end", "token;0XB") == (0, "BBB (token;0xb) has no values after 2025-01-01T00:00:00Z.\n")
    assert prices(client, "BBB") == ["3", None, None]
    assert ask(client, "assets", "").json["count"] == 1
    assert command("end", "AAA", "--at", "2025-01-01T12:00Z")[0] == 0
    assert prices(client, "AAA") == ["1", None, None]
    later = imports.prices_file(tmp_path, [("BBB", SECOND + DAY, "5")], "later.csv")
    with pytest.raises(UserError, match=r"ended at 2025-01-01.*assets end 'token;0xb' --undo"):
        imports.run(store, later)
    imports.run(store, imports.prices_file(tmp_path, [("BBB", SECOND - DAY, "4")], "earlier.csv"))
    assert prices(client, "BBB") == ["3", None, None]
    assert command("end", "BBB", "--undo") == (0, "BBB (token;0xb) has not ended.\n")
    imports.run(store, later)
    assert prices(client, "BBB") == ["3", "5", None]


def test_what_the_next_snapshot_would_undo_or_nobody_could_mean_is_refused(command: Any, store: Store) -> None:
    take_snapshot(JOBS["prices"], HandMade(assets_=[LISTED], prices_={"native;luna": Decimal(1)}), store, NOON)
    before = read_assets(store)
    for arguments, reason in (
        ("end LUNA", "The source lists LUNA (native;luna), so its next snapshot would remove the end."),
        ("end XYZ", "'XYZ' is the symbol of no asset. The view `all_assets` lists them."),
        ("end token;0xF", "'token;0xF' names no asset."),
        ("end AAA --undo", "AAA (token;0xa) has not ended."),
        ("end AAA --at 2099-01-01", "is in the future"),
    ):
        code, output = command(*arguments.split())
        assert code == 2
        assert reason in output
    assert read_assets(store) == before
