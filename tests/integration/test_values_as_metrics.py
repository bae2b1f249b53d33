"""The values of the protocol on /metrics (ANALYTICS_METRICS_VALUES): those of new snapshots, or none."""

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from decimal import Decimal

import pytest

from analytics_service.app import create_app
from analytics_service.config.settings import Settings
from analytics_service.config.values import names
from analytics_service.errors import Busy
from analytics_service.market.events import Action, Event
from jobs.registry import JOBS
from jobs.runner import run_once
from tests.doubles import LOCAL, FreshHeads, Statement, WatchedStore
from tests.integration.databases import database
from tests.integration.handmade import HandMade
from tests.integration.routes import Client
from tests.integration.test_missing_prices import ALICE, BOB, CAROL, EVERY, FAMILIES, NOON, SOURCE, A, B, X
from tests.samples import samples

pytestmark = pytest.mark.slow

# No job takes rates here.
CHOSEN = names(
    "price,lend_rate,loans-originated,tvl,net_tvl,debt,utilization,debt-at-risk,bad-debt,"
    f"{BOB},{CAROL.upper().replace('X', 'x')}"
)
LOAN = Event("1", Action.BORROW, A, ALICE, NOON, 3, Decimal(6), Decimal(2), 0, tx_hash="1")
Scrape = Callable[[float], dict[str, float]]


@pytest.fixture
def busy() -> threading.Event:
    """While it is set, the store answers looks at the ledger only."""
    return threading.Event()


@pytest.fixture
def watched(settings: Settings, busy: threading.Event) -> Iterator[WatchedStore]:
    """A store in which prices are unknown after an hour."""

    def refuse(statement: Statement) -> None:
        if busy.is_set() and statement.name not in ("ledger", "rewrites"):
            raise Busy

    settings = replace(settings, price_max_age=3600, metrics_values=CHOSEN)
    with database(settings), closing(WatchedStore(settings, before=refuse)) as watched:
        yield watched


@pytest.fixture
def scrape(settings: Settings, watched: WatchedStore) -> Scrape:
    """What a service shows at an instant of the source."""
    now = NOON
    app = create_app(replace(settings, metrics_values=CHOSEN), watched, lambda: now, FreshHeads(watched))
    client = Client(app.operators, headers=LOCAL)

    def scrape(number: float) -> dict[str, float]:
        nonlocal now
        now = NOON + number * EVERY
        return samples(client.simulate_get("/metrics").text)

    return scrape


def take(watched: WatchedStore, number: float, source: HandMade = SOURCE) -> None:
    for family in (*FAMILIES, "loans"):
        run_once(JOBS[family], replace(source, events_=[LOAN]), watched, NOON + number * EVERY)


def of(metric: str, asset_id: str) -> str:
    return f'analytics_{metric}{{asset="{asset_id}",symbol="{asset_id.partition(";")[2].upper()}"}}'


def health(address: str, what: str = "ratio") -> str:
    return f'analytics_health_{what}{{account_index="0",address="{address}"}}'


def known(shown: dict[str, float]) -> dict[str, float]:
    prefix = 'analytics_value_known{history="'
    return {name.removeprefix(prefix)[:-2]: value for name, value in shown.items() if name.startswith(prefix)}


def values(shown: dict[str, float]) -> dict[str, float]:
    """What the settings have chosen, and whether it is known."""
    chosen = ("price_usd", "loans", "tvl", "net", "debt", "util", "bad", "health", "value")
    return {name: value for name, value in shown.items() if name.startswith(tuple(f"analytics_{of}" for of in chosen))}


OF_X = [of(metric, X) for metric in ("price_usd", "debt_usd")]
TOTALS = ("tvl", "net-tvl", "debt-at-risk", "bad-debt")
SUMS = [f"analytics_{name.replace('-', '_')}_usd" for name in TOTALS]


def test_values_are_those_of_the_newest_snapshots(watched: WatchedStore, scrape: Scrape) -> None:
    """2000 USD of a, 700 of b and 450 of x are locked; 500 of b and 30 of x are owed. Alice, Carol and Dan are at risk,
    and what Dan has posted never had a price. Bob's second account owes nothing."""
    take(watched, 0)
    shown = scrape(0)
    assert [shown[of("price_usd", asset_id)] for asset_id in (A, B, X)] == [2, 1, 3]
    assert [shown[of("debt_usd", asset_id)] for asset_id in (B, X)] == [500, 30]
    assert [shown[of("utilization_ratio", asset_id)] for asset_id in (B, X)] == [pytest.approx(5 / 7), 0.1]
    assert [shown[name] for name in SUMS] == [3150, 2620, 170, 40]
    assert shown[of("loans_originated_usd_total", A)] == 6
    assert [shown[health(address)] for address in (BOB, CAROL)] == [1.2, pytest.approx(16 / 15)]
    for metric in ("ratio", "known"):
        assert sum(name.startswith(f"analytics_health_{metric}") for name in shown) == 2
    assert known(shown) == dict.fromkeys(TOTALS, 1)
    assert not any("lend_rate_ratio" in name for name in shown)


def test_what_is_unknown_or_has_ended_has_no_sample(watched: WatchedStore, scrape: Scrape) -> None:
    """The price of x, which is not listed for a moment, is an hour and a half old. Later x is not listed any more, and
    2000 USD of a and 700 of b are left."""
    for number in (0, 1, 2):
        take(watched, number)
    assert scrape(2)[of("price_age_seconds", X)] == 3600
    take(watched, 3)
    shown = scrape(3)
    assert not shown.keys() & {*OF_X, *SUMS, health(BOB), health(CAROL)}
    assert known(shown) == dict.fromkeys(TOTALS, 0)
    assert [shown[health(address, "known")] for address in (BOB, CAROL)] == [0, 0]
    assert (shown[of("price_usd", A)], shown[of("utilization_ratio", X)]) == (2, 0.1)
    take(watched, 8)
    shown = scrape(8)
    assert shown["analytics_tvl_usd"] == 2700
    assert [name for name in shown if name.endswith('symbol="X"}')] == []


def test_scrapes_read_each_snapshot_once_and_keep_values_while_the_store_is_away(
    watched: WatchedStore, scrape: Scrape
) -> None:
    take(watched, 0)
    shown = scrape(0)
    read = ("observed_between", "last_sums", "position_items")
    before = [watched.queries[name] for name in read]
    assert scrape(0) == shown
    assert [watched.queries[name] for name in read] == before
    run_once(JOBS["markets"], SOURCE, watched, NOON + EVERY)
    shown = scrape(1)
    # Of the histories of markets, and of health, which is made from markets, too.
    assert [watched.queries[name] - times for name, times in zip(read, before, strict=True)] == [1, 0, 1]
    watched.away = True
    away = scrape(1)
    assert away["analytics_store_up"] == 0
    assert values(away) == values(shown)


def test_values_stay_for_five_minutes_while_newer_ones_cannot_be_read(
    watched: WatchedStore, scrape: Scrape, busy: threading.Event
) -> None:
    """Three minutes later Bob has no debt. What is not known to be unknown is not shown as such."""
    take(watched, 0)
    shown = scrape(0)
    take(watched, 0.1, replace(SOURCE, positions_=()))
    busy.set()
    assert values(scrape(0.1)) == values(shown)
    assert values(scrape(0.2)) == {}
    busy.clear()
    shown = scrape(0.2)
    assert known(shown) == dict.fromkeys(TOTALS, 1)
    assert (shown["analytics_tvl_usd"], shown["analytics_debt_at_risk_usd"]) == (3150, 0)
    assert health(BOB) not in shown


def test_values_of_old_snapshots_are_left_out(watched: WatchedStore, scrape: Scrape) -> None:
    """Prices are unknown after an hour, and all else with them; markets have a newer snapshot."""
    take(watched, 0)
    run_once(JOBS["markets"], SOURCE, watched, NOON + EVERY)
    assert {of("price_usd", A), *SUMS, health(BOB)} <= scrape(2).keys()
    shown = scrape(2.1)
    assert known(shown) == {"tvl": 1, "net-tvl": 1, "debt-at-risk": 0, "bad-debt": 0}
    assert shown["analytics_tvl_usd"] == 3150
    assert not shown.keys() & {of("price_usd", A), health(BOB), health(CAROL)}
