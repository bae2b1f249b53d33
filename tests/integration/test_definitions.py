"""Definitions of assets that were wrong and are corrected, and those that change in a past that is filled in."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from analytics_service.cli.main import cli
from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.market.assets import Asset, AssetGroup
from analytics_service.market.instants import unix_second
from analytics_service.market.markets import CollateralConfig, CollateralMarket, LendMarket, Market
from analytics_service.market.positions import Account, Holding, Position
from analytics_service.store.datasets.assets import read_assets
from jobs.recompute import DATASETS, day_by_day, plan, recompute, replace_snapshots
from jobs.registry import JOBS
from jobs.runner import backfill, take_snapshot
from tests.doubles import FreshHeads
from tests.integration.conftest import Run
from tests.integration.handmade import NOON, HandMade, debt_market
from tests.integration.routes import client_of

D = Decimal
HOUR = timedelta(hours=1)
LAST = NOON + HOUR
X, U = "token;x", "token;u"
RULES = CollateralConfig(True, D("0.7"), D("0.8"), None, D(0), D(0))
TAKEN = ("prices", "ptoken", "markets", "positions")


@dataclass
class Mistaken(HandMade):
    """States 18 decimals of X for an hour, then the 8 that it has; of the past what it said then, if it `remembers`.

    1,000 X are lent and 100 posted; after the first hour 1,300 and 50. An account owes 760 U against all that is
    posted, at 10 USD: its health is 0.8 * 1,000 / 760, then half of that. With 18 decimals it is next to nothing.
    """

    remembers: bool = True
    hour: int = 0

    def assets(self, at: datetime) -> Sequence[Asset]:
        decimals = 18 if ((at - NOON) // HOUR if self.remembers else self.hour) < 1 else 8
        x = Asset(AssetGroup.TOKEN, "x", "Ex", "X", "wx", decimals, 2)
        return [x, replace(x, group_key="u", name="U", symbol="U", symbol_denom="u", decimals_denom=6)]

    def markets(self, at: datetime) -> Sequence[Market]:
        lent, balance = (1000, 100) if at < LAST else (1300, 50)
        posted, owed = CollateralMarket(RULES, balance * 10**8, 100 * 10**8), 760 * 10**6
        return [
            Market(X, LendMarket(D(0), lent * 10**8, 1000 * 10**8), posted, None),
            Market(U, None, None, debt_market(balance=owed, shares=owed)),
        ]

    def take(self, store: Store, hour: int) -> None:
        self.hour = hour
        for name in TAKEN:
            take_snapshot(JOBS[name], self, store, NOON + hour * HOUR)


DEBTOR = Position("0x" + "a" * 40, (Account(0, (Holding(X, 100 * 10**8),), (Holding(U, 760 * 10**6),)),))


@pytest.mark.parametrize("remembers", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_after_decimals_are_corrected_all_says_the_same(
    settings: Settings, store: Store, tmp_path: Path, remembers: bool
) -> None:
    source = Mistaken(remembers=remembers, positions_=[DEBTOR], prices_={X: D(10), U: D(1)})
    for hour in range(2):
        source.take(store, hour)
    file, last = tmp_path / "assets.csv", LAST
    file.write_text("symbol,address,decimals\nX,x,8\n")
    said = CliRunner().invoke(cli, ["import", "assets", str(file)], env=settings.to_environment({})).output
    span = "--start 2025-03-01T12:00:00Z --end 2025-03-01T13:00:00Z"
    assert f"`analytics-service jobs recompute {span}`" in said
    assert f"`analytics-service jobs backfill all --again {span}`" in said
    # The file says nothing of these.
    described = read_assets(store)[X]
    assert (described.decimals_denom, described.decimals_display) == (8, 2)
    assert (described.name, described.symbol_denom) == ("Ex", "wx")

    def shown() -> dict[str, list[Any]]:
        """At each instant: what is lent and posted, and the debt that is liquidatable, in histories and with `at`."""
        client = client_of(settings, store, unix_second(last) + 30, FreshHeads)

        def points(path: str) -> list[Any]:
            grid = f"start={unix_second(NOON) + 1}&end={unix_second(last) + 1}&period=h&align=calendar"
            answer = client.simulate_get(f"/api/v1/{path}", query_string=grid).json["data"]
            return [point["v"] for point in answer["points"]]

        def moments(path: str) -> list[Any]:
            instants = (unix_second(NOON + hour * HOUR) for hour in range(2))
            return [client.simulate_get(f"/api/v1/{path}", query_string=f"at={at}").json["data"] for at in instants]

        return {
            "tvl": points("markets/history/tvl"),
            "tvl at": [tvl["total_value"] for tvl in moments("markets/tvl")],
            "liquidatable": points("analytics/market/history/liquidatable-debt"),
            "liquidatable at": [risk["liquidatable"]["debt_value"] for risk in moments("analytics/market/risk")],
        }

    for portion in day_by_day(store, DATASETS, NOON, last + timedelta(seconds=1)):
        recompute(store, portion)
    # The market of the last hour was not taken, because the decimals were others.
    for name in ("markets", "positions"):
        for portion in plan(store, name, NOON, last + timedelta(seconds=1)):
            replace_snapshots(JOBS[name], source, store, portion)
    right, risky = ["11000", "13500"], ["0", "760"]
    assert shown() == {"tvl": right, "tvl at": right, "liquidatable": risky, "liquidatable at": risky}


class Renamed(HandMade):
    """Calls an asset DAI until 20 November 2025, and USDS from then on."""

    def assets(self, at: datetime) -> Sequence[Asset]:
        symbol = "DAI" if at < RENAMED else "USDS"
        return [Asset(AssetGroup.TOKEN, "lend", symbol, symbol, symbol.lower(), 6, 2)]


RENAMED, DAY = datetime(2025, 11, 20, tzinfo=UTC), timedelta(days=1)


def test_a_rename_within_a_past_that_is_filled_in_is_kept(settings: Settings, store: Store, run: Run) -> None:
    """The snapshots of 18 to 22 November between those of other days."""
    for day in (10, 30):
        take_snapshot(JOBS["prices"], Renamed(), store, RENAMED.replace(day=day))
    backfill(JOBS["prices"], Renamed(), store, [RENAMED + number * DAY for number in (-2, -1, 0, 1, 2)])
    client = client_of(settings, store, unix_second(RENAMED + 30 * DAY), FreshHeads)

    def ask(path: str, query: str) -> Any:
        answer = client.simulate_get(f"/api/v1/assets{path}", query_string=query)
        assert answer.status_code == 200, answer.text
        return answer.json["data"]

    shown = {day: ask("", f"at=2025-11-{day}")[0]["metadata"]["symbol"] for day in (18, 19, 20)}
    assert shown == {18: "DAI", 19: "DAI", 20: "USDS"}
    assert ask("", "")[0]["metadata"]["symbol"] == "USDS"
    history = "start=2025-11-18&end=2025-11-22&period=d"
    dai, usds = (ask("/price-history", f"{history}&symbols={symbol}") for symbol in ("DAI", "USDS"))
    assert dai == usds
    assert [point["v"] for point in usds["series"][0]["points"]] == ["2"] * 5
    assert run("SELECT DISTINCT symbol FROM price") == [("USDS",)]
