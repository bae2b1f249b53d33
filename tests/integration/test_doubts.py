"""Values in doubt: who is told of them, and that they are gone once they are corrected."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from click.testing import CliRunner

from analytics_service.app import create_app
from analytics_service.cli.main import cli
from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.market.assets import Asset, AssetGroup
from analytics_service.market.instants import shown
from analytics_service.market.markets import LendMarket, Market
from analytics_service.market.prices import Price
from jobs.again import plan, retake
from jobs.left_out import LeftOut
from jobs.registry import JOBS
from jobs.runner import backfill, run_once
from tests.doubles import LOCAL, FreshHeads, WatchedStore
from tests.integration.conftest import Run
from tests.integration.handmade import NOON, HandMade
from tests.integration.routes import Client
from tests.samples import samples

MINUTE = timedelta(minutes=1)
ONE, TWO = "native;one", "native;two"
DOUBTS = """
SELECT dateDiff('minute', toDateTime('2025-03-01 12:00:00', 'UTC'), observed_at), what, history, symbol, value, before
FROM anomalies
ORDER BY observed_at, history, symbol
"""


@dataclass
class Protocol(HandMade):
    """Two assets of 2 and 8 USD, of each of which five are lent. `usd` and `lent` differ at some minutes."""

    assets_: Sequence[Asset] = tuple(
        Asset(AssetGroup.NATIVE, name, name, name.upper(), f"u{name}", 6, 2) for name in ("one", "two")
    )
    usd: Mapping[int, Mapping[str, str | None]] = field(default_factory=dict)
    lent: Mapping[int, int] = field(default_factory=dict)

    def prices(self, at: datetime) -> Sequence[Price]:
        usd = {ONE: "2", TWO: "8"} | dict(self.usd.get((at - NOON) // MINUTE, {}))
        return [Price(asset_id, at, Decimal(value)) for asset_id, value in usd.items() if value]

    def markets(self, at: datetime) -> Sequence[Market]:
        lent = self.lent.get((at - NOON) // MINUTE, 5) * 10**6
        return [Market(asset_id, LendMarket(Decimal(0), lent, lent), None, None) for asset_id in (ONE, TWO)]


def minutes(first: int, last: int) -> list[datetime]:
    return [NOON + number * MINUTE for number in range(first, last + 1)]


@pytest.mark.slow
@pytest.mark.usefixtures("views")
def test_a_doubt_is_told_once_and_listed_until_it_is_corrected(
    settings: Settings, store: Store, run: Run, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    """From the second minute to the fourth, a price has its comma in another place, and that of another asset is 0
    from the third on."""
    usd = {1: {ONE: "20"}, 2: {ONE: "20", TWO: "0"}, 3: {ONE: "20", TWO: "0"}, 4: {TWO: "0"}}
    source, left_out = Protocol(usd=usd), LeftOut()
    for at in minutes(0, 4):
        run_once(JOBS["prices"], source, store, at, left_out=left_out)
    jump = (1, "jump", "price", "ONE", 20, 2)
    zeros = [(2, "zero", "price", "TWO", 0, 8), *((minute, "zero", "price", "TWO", 0, None) for minute in (3, 4))]
    assert run(DOUBTS) == [jump, *zeros[:2], (4, "jump", "price", "ONE", 2, 20), zeros[2]]
    told = [message for message in caplog.messages if "doubt" in message]
    assert told[0] == (
        "price of native;one at 2025-03-01T12:01:00Z is 20, after 2 at 2025-03-01T12:00:00Z. It is in doubt. If it is "
        "wrong, `analytics-service remove price --symbol 'native;one' --start 2025-03-01T12:01:00Z --end "
        "2025-03-01T12:01:00Z` takes it out, with a later --end what follows, too; if it is right, there is nothing to "
        "do."
    )
    assert len(told) == 3
    run_once(JOBS["markets"], source, store, NOON)
    span = ["--start", shown(NOON + MINUTE), "--end", shown(NOON + 3 * MINUTE), "--into", str(tmp_path)]
    environ = settings.to_environment({})
    done = CliRunner().invoke(cli, ["remove", "price", "--symbol", "ONE", *span], env=environ, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    # What was removed had held until the next price.
    assert done.output.endswith(f"jobs recompute {span[0]} {span[1]} --end 2025-03-01T12:03:59Z\n")
    assert run(DOUBTS) == zeros
    for portion in plan(store, "prices", NOON, NOON + 4 * MINUTE):
        retake(JOBS["prices"], Protocol(), store, portion)
    assert run(DOUBTS) == []


@pytest.mark.slow
@pytest.mark.usefixtures("views")
def test_a_backfill_finds_the_same_doubts_as_the_jobs_of_its_time(
    store: Store, run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    """In the second minute all of one amount is halved and a bit more, and prices are as they were."""
    source = Protocol(lent={2: 2})
    for name in ("prices", "markets"):
        run_once(JOBS[name], source, store, NOON)
        backfill(JOBS[name], source, store, minutes(1, 3))
    assert run(DOUBTS) == [
        (2, "fall", "deposits_usd", "ONE", 4, 10),
        (2, "fall", "deposits_usd", "TWO", 16, 40),
        (2, "fall", "tvl", "", 20, 50),
    ]
    told = [message for message in caplog.messages if "doubt" in message]
    assert len(told) == 2
    assert told[0].startswith("tvl at 2025-03-01T12:02:00Z is 20, after 50 at 2025-03-01T12:01:00Z. It is in doubt. If")
    assert "so is that of native;two (16)" in told[1]
    assert "`analytics-service jobs backfill markets --again --start 2025-03-01T12:02:00Z --end" in told[1]


@pytest.mark.slow
@pytest.mark.usefixtures("views")
def test_operators_are_told_of_doubts_and_of_prices_that_are_lost(settings: Settings, store: Store) -> None:
    """The price of one asset was observed a day and an hour ago for the last time, that of the other one rises."""
    lost = {ONE: None}
    source = Protocol(usd={-1: lost, 0: {**lost, TWO: "80"}})
    run_once(JOBS["prices"], source, store, NOON - timedelta(hours=25))
    for at in minutes(-1, 0):
        run_once(JOBS["prices"], source, store, at)
    run_once(JOBS["markets"], source, store, NOON)
    with closing(WatchedStore(settings)) as watched:
        app = create_app(settings, watched, lambda: NOON + MINUTE / 2, FreshHeads(watched))
        health = Client(app).simulate_get("/api/v1/status/health").json["data"]
        operators = Client(app.operators, headers=LOCAL)
        document = operators.simulate_get("/operations").json["data"]
        gauges = samples(operators.simulate_get("/metrics").text)
        # However many ask, the store is asked once a minute.
        assert (watched.queries["anomalies"], watched.queries["last_rows"]) == (1, 1)
    lost_price = {"asset_id": ONE, "symbol": "ONE", "newest": "2025-02-28T11:00:00Z", "age_seconds": 90_030}
    assert health["lost_prices"] == document["lost_prices"] == [lost_price]
    unknown = "no price is known of ONE (last 2025-02-28T11:00:00Z): sums in USD and health that need one are null"
    assert unknown in health["faults"]
    assert unknown in document["faults"]
    assert health["anomalies_last_day"] == document["anomalies_last_day"] == gauges["analytics_anomalies"] == 1
    # It may be right, so it is no fault.
    assert not any("TWO" in fault or "doubt" in fault for fault in health["faults"])
