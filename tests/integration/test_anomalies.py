"""Which values the view `anomalies` marks, and that operators see their number."""

from collections import defaultdict
from collections.abc import Sequence
from contextlib import closing
from datetime import datetime, timedelta
from decimal import Decimal

import polars as pl

from analytics_service.app import create_app
from analytics_service.clickhouse.columns import with_version
from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.market.assets import Asset, AssetGroup
from analytics_service.market.instants import DAY, from_unix
from analytics_service.market.markets import LendMarket, Market
from analytics_service.market.prices import Price
from analytics_service.store.datasets.histories import HISTORIES, PRICES
from analytics_service.store.datasets.observations import OBSERVATIONS, observations_of, with_known_times
from jobs.registry import JOBS
from jobs.runner import take_snapshot
from tests.doubles import LOCAL, FreshHeads, WatchedStore
from tests.integration.conftest import Run
from tests.integration.handmade import NOON, HandMade
from tests.integration.routes import Client
from tests.samples import samples

MINUTE = timedelta(minutes=1)
ONE, TWO = "native;one", "native;two"
ASSETS = tuple(Asset(AssetGroup.NATIVE, name, name, name.upper(), f"u{name}", 6, 2) for name in ("one", "two"))
# 2025-03-01T12:00:00Z
START = 1_740_830_400
BY_NAME = {history.name: history for history in HISTORIES}
MARKED = """
SELECT asset_id, toUnixTimestamp(observed_at) - {start} AS second, kind, value, before
FROM anomalies(start = {start}, end = {end}, factor = 2.5)
ORDER BY ALL
"""
Marked = list[tuple[int, str, float, float | None]]
Values = Sequence[str | None]


def add(store: Store, history: str, series: Sequence[Values], every: int = 60) -> None:
    """Write values at a distance of some seconds, each series of an asset "native;0" and so on. None is no value."""
    rows = [
        observations_of({BY_NAME[history]: {f"native;{number}": Decimal(value)}}, from_unix(START + place * every))
        for number, values in enumerate(series)
        for place, value in enumerate(values)
        if value is not None
    ]
    store.insert(OBSERVATIONS, with_version(with_known_times(pl.concat(rows)), 1))


def marked(run: Run, start: int = START, end: int = START + 10 * DAY) -> dict[str, Marked]:
    """What is marked of each asset."""
    found: dict[str, Marked] = defaultdict(list)
    for asset_id, *mark in run(MARKED.format(start=start, end=end)):
        found[asset_id].append(tuple(mark))  # type: ignore[arg-type]
    return found


PRICE_CASES: Sequence[tuple[Values, Marked]] = (
    # At the factor is not beyond it, in either direction.
    (["2", "5", "2"], []),
    (["2", "5.01"], [(60, "jump", 5.01, 2)]),
    (["5", "1.99"], [(60, "jump", 1.99, 5)]),
    # The value that comes back is not marked, and of a level that stays only the first is.
    (["2", "200", "2", None, "2"], [(60, "jump", 200, 2)]),
    (["2", "200", "0.1", "3"], [(60, "jump", 200, 2), (120, "jump", 0.1, 2)]),
    (["2", "20", "21", "20"], [(60, "jump", 20, 2)]),
    (["2", "20", "21", "2"], [(60, "jump", 20, 2), (180, "jump", 2, 21)]),
    # Slow changes are none, however far they go.
    (["2", "4", "8", "16", "32"], []),
    # Zeros are marked, and nothing is compared with them.
    (["0", "0", "7"], [(0, "zero", 0, None), (60, "zero", 0, None)]),
    (["7", "0", "0", "7", "70"], [(60, "zero", 0, 7), (120, "zero", 0, 7), (240, "jump", 70, 7)]),
)


def test_a_price_is_marked_that_jumps_or_is_zero(store: Store, run: Run) -> None:
    add(store, "price", [values for values, _ in PRICE_CASES])
    found = marked(run)
    assert [found[f"native;{number}"] for number in range(len(PRICE_CASES))] == [marks for _, marks in PRICE_CASES]


def test_a_total_is_marked_below_half_or_above_twice(store: Store, run: Run) -> None:
    """What is gone is marked once, and nothing is compared with zero."""
    values = ["10", "5", "10", "21", "10", "4.9", "0", "0", "90"]
    histories = ("tvl", "deposits_usd", "collateral_usd", "debt_usd")
    for history in histories:
        add(store, history, [values])
    marks = [(180, "rise", 21, 10), (300, "fall", 4.9, 10), (360, "fall", 0, 10)]
    assert marked(run) == {"native;0": sorted(marks * len(histories))}


def test_a_value_is_compared_with_one_of_at_most_a_day_before(store: Store, run: Run) -> None:
    add(store, "price", [["2", "20"]], DAY + 1)
    add(store, "debt_usd", [["2", "20"]], DAY)
    assert marked(run) == {"native;0": [(DAY, "rise", 20, 2)]}


def test_a_range_holds_its_start_and_not_its_end_and_nothing_unknown_or_corrected(store: Store, run: Run) -> None:
    """What it is compared with may be before the range."""
    add(store, "price", [["2", "20", "2", "0"]])
    assert marked(run) == {"native;0": [(60, "jump", 20, 2), (180, "zero", 0, 2)]}
    assert marked(run, START + 60, START + 180) == {"native;0": [(0, "jump", 20, 2)]}
    assert marked(run, START + 61, START + 181) == {"native;0": [(119, "zero", 0, 2)]}
    corrected = observations_of({PRICES: {"native;0": Decimal(3)}}, from_unix(START + 60))
    unknown = observations_of({PRICES: {"native;0": None}}, from_unix(START + 180))
    store.insert(OBSERVATIONS, with_version(with_known_times(pl.concat([corrected, unknown])), 2))
    assert marked(run) == {}


class Rising(HandMade):
    """The price of one asset was observed a day and an hour ago for the last time, that of the other one rises."""

    def prices(self, at: datetime) -> Sequence[Price]:
        usd = {ONE: 2, TWO: 8} if at < NOON - MINUTE else {TWO: 80 if at == NOON else 8}
        return [Price(asset_id, at, Decimal(value)) for asset_id, value in usd.items()]

    def markets(self, at: datetime) -> Sequence[Market]:
        return [Market(asset_id, LendMarket(Decimal(0), 5, 5), None, None) for asset_id in (ONE, TWO)]


def test_operators_are_told_of_anomalies_and_of_lost_prices(settings: Settings, store: Store) -> None:
    source = Rising(assets_=ASSETS)
    for at in (NOON - timedelta(hours=25), NOON - MINUTE, NOON):
        take_snapshot(JOBS["prices"], source, store, at)
    take_snapshot(JOBS["markets"], source, store, NOON)
    with closing(WatchedStore(settings)) as watched:
        app = create_app(settings, watched, lambda: NOON + MINUTE / 2, FreshHeads(watched))
        health = Client(app).simulate_get("/api/v1/status/health").json["data"]
        operators = Client(app.operators, headers=LOCAL)
        document = operators.simulate_get("/operations").json["data"]
        gauges = samples(operators.simulate_get("/metrics").text)
        # However many ask, the store is asked once in five minutes.
        assert (watched.queries["count_anomalies"], watched.queries["read_last_rows"]) == (1, 1)
    lost_price = {"asset_id": ONE, "symbol": "ONE", "newest": "2025-02-28T11:00:00Z", "age_seconds": 90_030}
    assert health["lost_prices"] == document["lost_prices"] == [lost_price]
    unknown = "no recent price of ONE (last 2025-02-28T11:00:00Z): sums in USD and health that need it are null"
    assert unknown in health["faults"]
    assert unknown in document["faults"]
    assert health["anomalies_last_day"] == document["anomalies_last_day"] == gauges["analytics_anomalies"] == 1
    # It may be right, so it is no fault.
    assert not any("TWO" in fault for fault in health["faults"])
