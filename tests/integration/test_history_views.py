"""Totals, and means and candles by the hour and day, by hand and against what the service answers over HTTP."""

import random
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.market.assets import Asset
from analytics_service.market.instants import from_unix, unix_second
from analytics_service.market.markets import CollateralConfig, CollateralMarket, LendMarket, Market
from analytics_service.store.datasets.assets import present_frame, read_assets
from analytics_service.store.datasets.histories import DEPOSITS, LEND_RATES, PRICES, History
from analytics_service.store.rewrite import write_definitions
from jobs.registry import JOBS
from jobs.runner import take_snapshot
from tests import clickhouse
from tests.integration.conftest import Run, Simulated
from tests.integration.handmade import HandMade, debt_market
from tests.integration.pages import Observations, asset, commit
from tests.integration.routes import Client, client_of
from tests.integration.test_round_trips import bring

HOUR, DAY = 3600, 86_400
MIDNIGHT = datetime(2025, 1, 6, tzinfo=UTC)
FIRST = unix_second(MIDNIGHT)
A, B = "token;a", "token;b"


def near(value: str | float | None) -> Any:
    """Within what floats and 18 decimals differ by."""
    return None if value is None else pytest.approx(float(value), rel=1e-12, abs=1e-18)


# Prices of A by the day from six in the morning on, by the hour, and by the minute, and of B once. Each holds until the
# next one, and the last one closes the fourth day.
BY_DAY = [(FIRST + 6 * HOUR, "10"), (FIRST + DAY, "20")]
BY_HOUR = [(FIRST + 2 * DAY + HOUR * hour, "40" if hour < 12 else "60") for hour in range(24)]
BY_MINUTE = [(FIRST + 3 * DAY + 60 * minute, "100" if minute < 30 else "200") for minute in range(60)]
OBSERVED: Observations = {
    A: [(at, Decimal(value)) for at, value in (*BY_DAY, *BY_HOUR, *BY_MINUTE, (FIRST + 4 * DAY, "200"))],
    B: [(FIRST + 2 * DAY + 45_296, Decimal(7))],
}


@pytest.mark.usefixtures("views")
def test_a_mean_weighs_values_by_the_time_that_they_held(store: Store, run: Run) -> None:
    """B begins at 12:34:56 of the third day."""
    commit(store, OBSERVED)
    columns = "mean, open, high, low, close, observations"
    assert run(f"SELECT asset_id, day, {columns} FROM price_daily ORDER BY asset_id, day") == [
        (A, date(2025, 1, 6), 10, 10, 10, 10, 10, 1),
        (A, date(2025, 1, 7), 20, 20, 20, 20, 20, 1),
        (A, date(2025, 1, 8), 50, 40, 60, 40, 60, 24),
        # Half an hour of 100, and 23 and a half of 200.
        (A, date(2025, 1, 9), near(100 / 48 + 200 * 47 / 48), 100, 200, 100, 200, 60),
        (B, date(2025, 1, 8), 7, 7, 7, 7, 7, 1),
        (B, date(2025, 1, 9), 7, None, None, None, 7, 0),
    ]
    of_hours = f"SELECT toUnixTimestamp(hour), symbol, {columns} FROM price_hourly WHERE asset_id = '{A}' ORDER BY hour"
    hours = run(of_hours)
    assert [row[0] for row in hours] == list(range(FIRST + 6 * HOUR, FIRST + 4 * DAY, HOUR))
    assert [row[1:] for row in (hours[0], hours[17], hours[18], hours[66], hours[67], hours[89])] == [
        ("a", 10, 10, 10, 10, 10, 1),
        ("a", 10, None, None, None, 10, 0),
        ("a", 20, 20, 20, 20, 20, 1),
        ("a", 150, 100, 200, 100, 200, 60),
        ("a", 200, None, None, None, 200, 0),
        ("a", 200, None, None, None, 200, 0),
    ]
    assert run(f"SELECT toUnixTimestamp(min(hour)) FROM price_hourly WHERE asset_id = '{B}'") == [
        (FIRST + 2 * DAY + 12 * HOUR,)
    ]
    # Over these hours A was worth 10 for 18, 20 for 24, 40 and 60 for 12 each, 100 for a half, 200 for the rest.
    (mean,) = run(f"SELECT avg(mean) FROM price_hourly WHERE asset_id = '{A}'")
    assert mean == (near((10 * 18 + 20 * 24 + 40 * 12 + 60 * 12 + 100 * 0.5 + 200 * 23.5) / 90),)


@pytest.mark.usefixtures("views")
def test_a_period_is_there_once_its_last_second_was_observed(store: Store, run: Run) -> None:
    counts = "SELECT (SELECT count() FROM price_hourly), (SELECT count() FROM price_daily)"
    for second, expected in ((HOUR - 2, (0, 0)), (HOUR - 1, (1, 0)), (DAY - 2, (23, 0)), (DAY - 1, (24, 1))):
        commit(store, {A: [(FIRST + second, Decimal(1))]})
        assert run(counts) == [expected]


def path_of(history: History) -> str:
    assert history.by_asset
    return f"/api/v1{history.by_asset.path}"


def compare(settings: Settings, client: Client, history: History, newest: int) -> int:
    """Compare the rows of both views with what the service answers for all buckets up to a second; return how many
    there are."""
    compared = 0
    for period, unit, width in (("h", "hourly", HOUR), ("d", "daily", DAY)):
        name = "hour" if period == "h" else "day"
        with clickhouse.client(settings) as own:
            rows = own.query(
                f"SELECT toUnixTimestamp(toDateTime({name}, 'UTC')), asset_id, mean, open, high, low, close, "
                f"observations FROM {history.name}_{unit}"
            ).result_rows
            first = own.command(
                f"SELECT toUnixTimestamp(min(observed_at)) FROM observation WHERE history = '{history.name}'"
            )
        answers = {
            agg: client.simulate_get(
                path_of(history), query_string=f"start={first}&end={newest}&period={period}&agg={agg}&limit=5000"
            )
            for agg in ("mean", "ohlc")
        }
        assert {answer.status_code for answer in answers.values()} == {200}
        means, candles = (
            {
                (point["t"], series["asset"]["id"]): point
                for series in answers[agg].json["data"]["series"]
                for point in series["points"]
                if point["t"] + width <= newest + 1
            }
            for agg in ("mean", "ohlc")
        )
        expected = {}
        for key, mean in means.items():
            if mean["v"] is not None:
                candle = candles[key]
                # The service carries on all of them where nothing was observed.
                extremes = [near(candle[column]) if candle["n"] else None for column in "ohl"]
                expected[key] = (near(mean["v"]), *extremes, near(candle["c"]), candle["n"])
        assert {row[:2]: row[2:] for row in rows} == expected
        assert len(rows) == len(expected)
        compared += len(rows)
    return compared


@pytest.mark.usefixtures("views")
def test_means_and_candles_are_those_of_the_service(settings: Settings, store: Store, draw: random.Random) -> None:
    """With gaps, values that are not known for a while, observations at the edges of buckets, and an asset that has
    ended."""
    newest, seen = FIRST + 12 * DAY, {}
    for name in "abcd":
        steps = [draw.choice([30, 60, 900, HOUR, 5 * HOUR, DAY, 3 * DAY]) for _ in range(150)]
        seconds = sorted({FIRST + draw.choice([0, 1, 899, 3599]) + sum(steps[:n]) for n in range(len(steps))})
        seen[f"token;{name}"] = [
            (at, None if name == "b" and draw.random() < 0.3 else Decimal(draw.randint(1, 10**9)).scaleb(-6))
            for at in seconds
            if at < newest
        ]
    seen["token;e"] = [(newest, Decimal(1))]
    commit(store, seen)
    assert compare(settings, client_of(settings, store, newest), PRICES, newest) > 600
    # One that ends within an hour, of whose later values nothing is shown.
    middle = seen["token;c"][len(seen["token;c"]) // 2][0] + draw.choice([0, 100, 4000])
    write_definitions(
        store, present_frame(store, [replace(read_assets(store)["token;c"], ended_at=from_unix(middle))]), "end"
    )
    assert compare(settings, client_of(settings, store, newest), PRICES, newest) > 500


def test_so_they_are_of_rates(simulated: Simulated, protocol: Client) -> None:
    assert compare(simulated.settings, protocol, LEND_RATES, simulated.noon) >= 2


TOTALS = {
    "deposits_usd": ("lend", "principal"),
    "collateral_usd": ("borrow_collateral", "total", "balance"),
    "debt_usd": ("borrow_debt", "balance"),
    "tvl": ("tvl", "tvl"),
    "net_tvl": ("tvl", "net_tvl"),
}


def test_totals_are_those_of_the_service(simulated: Simulated, protocol: Client) -> None:
    """At each snapshot of markets; and of what is observed as a total itself, every value."""
    found: dict[int, dict[str, Decimal]] = {}
    query = "SELECT toUnixTimestamp(observed_at) AS at, history, value_exact, usd FROM totals"
    for row in simulated.rows(query):
        assert row["usd"] == near(row["value_exact"])
        if row["history"] in TOTALS:
            found.setdefault(row["at"], {})[row["history"]] = row["value_exact"]
    stated: dict[int, dict[str, Decimal]] = {}
    for at in (simulated.noon - 2 * HOUR, simulated.noon - HOUR, simulated.noon):
        supply = protocol.simulate_get("/api/v1/markets/supply", query_string=f"at={at}").json["data"]
        stated[at] = {name: Decimal(_at(supply, path)) for name, path in TOTALS.items()}
    assert found == stated
    for total in found.values():
        assert total["debt_usd"] + total["net_tvl"] == total["tvl"] > 0
    for history in ("tvl", "net_tvl", "flash_loans", "debt_at_risk", "liquidatable_debt", "bad_debt"):
        own = simulated.rows(f"SELECT * FROM {history} ORDER BY ALL")
        assert own
        of_all = f"SELECT observed_at, usd, value_exact FROM totals WHERE history = '{history}' ORDER BY ALL"
        assert simulated.rows(of_all) == own
    assert simulated.rows("SELECT count() AS n FROM totals WHERE history = 'accounts_at_risk'") == [{"n": 0}]


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        value = value[name]
    return value


def test_cumulative_sums_of_assets_add_up_to_their_total(simulated: Simulated) -> None:
    for history in ("loans_originated", "liquidations"):
        (row,) = simulated.rows(
            f"WITH by_asset AS (SELECT max(value_exact) AS last FROM {history} GROUP BY asset_id) "
            "SELECT (SELECT sum(last) FROM by_asset) AS added, "
            f"(SELECT max(value_exact) FROM totals WHERE history = '{history}') AS total, "
            f"(SELECT count() FROM {history} WHERE asset_id = '' OR symbol = '') AS without_asset"
        )
        assert row["added"] == row["total"] > 0
        assert row["without_asset"] == 0


@pytest.mark.usefixtures("views")
def test_a_total_is_of_a_snapshot_and_of_known_parts(store: Store, run: Run, tmp_path: Path) -> None:
    """2 units of A at 3 USD and 5 of B at 7 are lent. Half an hour after the first snapshot there is an imported value
    of A alone. Then the price of B is lost, and then its market is gone."""
    rules = CollateralConfig(True, Decimal("0.7"), Decimal("0.8"), None, Decimal(0), Decimal(0))
    a, b = (
        Market(name, LendMarket(Decimal(0), units * 10**6, 1), CollateralMarket(rules, 10**6, 1), debt)
        for name, units, debt in ((A, 2, debt_market(balance=10**6, shares=1)), (B, 5, None))
    )
    assets: list[Asset] = [asset("a"), asset("b")]
    source = HandMade(assets_=assets, prices_={A: Decimal(3), B: Decimal(7)}, markets_=(a, b))
    day = timedelta(days=1)
    without = replace(source, prices_={A: Decimal(3)})
    for number, then in ((0, source), (2, without), (3, replace(without, markets_=(a,)))):
        take_snapshot(JOBS["prices"], then, store, MIDNIGHT + number * day)
        take_snapshot(JOBS["markets"], then, store, MIDNIGHT + number * day)
    (tmp_path / "one.csv").write_text("asset_id,symbol,observed_at,usd\ntoken;a,a,2025-01-06T00:30:00Z,99\n")
    bring(store, DEPOSITS, tmp_path / "one.csv")
    names = "('deposits_usd', 'collateral_usd', 'debt_usd', 'tvl', 'net_tvl')"
    found = run(f"SELECT toDate(observed_at), history, usd FROM totals WHERE history IN {names} ORDER BY ALL")
    totals: Mapping[date, Mapping[str, int]] = {
        date(2025, 1, 6): {"collateral_usd": 10, "debt_usd": 3, "deposits_usd": 41, "net_tvl": 48, "tvl": 51},
        date(2025, 1, 8): {"debt_usd": 3},
        date(2025, 1, 9): {"collateral_usd": 3, "debt_usd": 3, "deposits_usd": 6, "net_tvl": 6, "tvl": 9},
    }
    assert found == [(day, name, usd) for day, by_name in totals.items() for name, usd in by_name.items()]
