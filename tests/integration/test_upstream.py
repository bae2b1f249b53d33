"""A store that follows another deployment shows what that one shows."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import httpx
import pytest

from analytics_service.app import create_app
from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.market.events import Action
from analytics_service.market.instants import from_unix, unix_second
from analytics_service.sources.calls import Calls, OpenSource
from analytics_service.sources.simulated import EMPTY_ADDRESS, RICH_ADDRESS, SWAP_CONTRACT
from analytics_service.sources.simulated.source import SimulatedSource
from analytics_service.sources.simulated.terms import LAUNCH
from analytics_service.sources.upstream.source import UpstreamSource
from analytics_service.store.ownership import read_owner, simulated_spec
from jobs.registry import JOBS
from jobs.runner import backfill, instants_to_fill, take_snapshot
from tests import clickhouse
from tests.doubles import FirstHeads
from tests.integration.databases import database
from tests.integration.routes import COURSE, HISTORIES, KINDS, NOON, ROUTES, USER, Client, at, expect_error

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
FIRST = at(NOON)
# Each snapshot of all datasets, and the next one of some.
TICKS = {FIRST: [*JOBS], FIRST + 5 * MINUTE: ["prices", "loans"]}
# Upstream has snapshots of the hours from the first to the last; the follower asks for the hours' ends.
START, END = FIRST - 4 * HOUR, FIRST - 2 * HOUR


@dataclass
class Clock:
    now: datetime = FIRST

    def __call__(self) -> datetime:
        return self.now


@dataclass
class Deployment:
    """A store and its HTTP service, which shows what was written last."""

    settings: Settings
    store: Store
    clock: Clock
    asked: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.heads = FirstHeads(self.store)
        self.app = create_app(self.settings, self.store, self.clock, self.heads)
        self.client = Client(self.app)

    def transport(self) -> httpx.BaseTransport:
        """The way to the service, which notes what it is asked."""
        service = httpx.WSGITransport(self.app)

        def answer(request: httpx.Request) -> httpx.Response:
            self.asked.append(request.url.raw_path.decode())
            return service.handle_request(request)

        return httpx.MockTransport(answer)

    def take(self, source: Any, instant: datetime) -> None:
        self.clock.now = instant + timedelta(seconds=1)
        for name in TICKS[instant]:
            assert take_snapshot(JOBS[name], source, self.store, instant), name
        self.heads.look()

    def fill(self, source: Any, instants: Sequence[datetime]) -> None:
        for job in JOBS.values():
            backfill(job, source, self.store, instants)
        self.heads.look()


def liquidated() -> str:
    """The address whose account was liquidated first."""
    events = SimulatedSource("1").events(from_unix(LAUNCH), from_unix(NOON))
    return next(event.address for event in events if event.action is Action.LIQUIDATE)


@dataclass
class Pair:
    upstream: Deployment
    follower: Deployment
    source: OpenSource

    def answers(self, path: str, query: str) -> list[Any]:
        """What both answer."""
        both = [
            deployment.client.simulate_get(path, query_string=query) for deployment in (self.upstream, self.follower)
        ]
        assert [answer.status_code for answer in both] == [200, 200], (path, both[1].text)
        return [answer.json for answer in both]


@pytest.fixture(scope="module")
def pair(server: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """A deployment with hours of history and two ticks, and another that followed the ticks and then filled in the
    hours."""
    addresses = tmp_path_factory.mktemp("files") / "addresses"
    addresses.write_text(f"# followed\n{RICH_ADDRESS}\n{liquidated()}\n{EMPTY_ADDRESS}\n\n{SWAP_CONTRACT.upper()}\n")
    theirs = replace(server, clickhouse_database="test_upstream")
    ours = replace(server, clickhouse_database="test_follower", addresses_file=addresses)
    simulated, clock = SimulatedSource("1"), Clock()
    with database(theirs) as first, database(ours) as second:
        upstream, follower = Deployment(theirs, first, clock), Deployment(ours, second, clock)
        quick: dict[str, Any] = {"interval": 0, "wait": lambda _: None, "now": clock}
        own = UpstreamSource("http://upstream", ours, transport=upstream.transport(), **quick)
        with closing(OpenSource(own, Calls("http://upstream", 60))) as source:
            upstream.fill(simulated, instants_to_fill(START, END + MINUTE, HOUR))
            for tick in TICKS:
                upstream.take(simulated, tick)
                follower.take(source, tick)
            upstream.asked.clear()
            follower.fill(source, instants_to_fill(START, END, HOUR, at_ends=True))
            yield Pair(upstream, follower, source)


# What is made of the positions of all addresses, of which a follower has some.
OF_ALL = [f"/api/v1/analytics/market/{name}" for name in ("risk", "risk/ladder", "borrowers")]
# It has those of an address, too.
EVENTS = "/api/v1/analytics/market/events"
# The last is one of those that were filled in.
MOMENTS = ["", f"at={NOON - 7201}"]
# Filled in, they say more than upstream: prices are of the instant itself, and schedules are followed up to it.
OF_THE_INSTANT = ["/api/v1/assets/prices", f"{USER}/user", f"{USER}/ptoken/unlocks"]
# Paths that show together all that a source is asked for.
SHOWN = [
    "/api/v1/analytics/market/state",
    "/api/v1/assets",
    "/api/v1/assets/prices",
    "/api/v1/markets",
    "/api/v1/markets/config",
    "/api/v1/markets/merged",
    "/api/v1/analytics/ptoken/unlocks-distribution",
    "/api/v1/ptoken/state",
    "/api/v1/ptoken/staking",
    "/api/v1/swap/routes/all",
    f"{USER}/user",
    f"{USER}/ptoken/unlocks",
    f"{USER}/ptoken/staking",
    f"{USER}/wallet/balances",
    f"{USER}/tx-history",
]


def test_the_state_is_that_of_upstream(pair: Pair) -> None:
    for path in SHOWN:
        for when in MOMENTS:
            theirs, ours = pair.answers(path, "&".join(filter(None, (ROUTES[path].query, when))))
            assert ours == theirs or (when == MOMENTS[-1] and path in OF_THE_INSTANT), (path, when)


def test_nothing_is_said_of_all_accounts(pair: Pair) -> None:
    for path in (*OF_ALL, EVENTS):
        answer = pair.follower.client.simulate_get(path, query_string="" if path == EVENTS else ROUTES[path].query)
        message = expect_error(answer, 404, "entity_not_found", "user")
        assert message.endswith("Ask the deployment that it follows.")
        assert "http" not in message


def test_the_past_of_an_address_that_is_not_followed_is_unknown(pair: Pair) -> None:
    path, query = COURSE.replace(RICH_ADDRESS, "0x" + "0" * 39 + "9"), ROUTES[COURSE].query
    answer = pair.follower.client.simulate_get(path, query_string=query)
    assert "this address is not among them" in expect_error(answer, 404, "entity_not_found", "user")
    theirs, ours = pair.answers(COURSE, f"metric=debt&start={NOON}&end={NOON + 300}&period=min")
    assert ours == theirs


TICKED = f"start={NOON}&end={NOON + 300}&period=min"
FILLED = f"start={NOON - 4 * 3600}&end={NOON - 2 * 3600 - 1}&period=h"
BOTH = f"start={NOON - 5 * 3600}&end={NOON + 300}&period=h&interval=3"


def test_every_history_is_that_of_upstream(pair: Pair) -> None:
    for path in HISTORIES:
        for query in (TICKED, FILLED, BOTH) if path in KINDS.values() else (BOTH,):
            theirs, ours = pair.answers(path, query)
            assert ours == theirs, (path, query)


def test_a_follower_of_a_simulated_deployment_is_simulated(pair: Pair) -> None:
    assert simulated_spec(read_owner(pair.follower.store).name) == "http://upstream"
    health, own = pair.answers("/api/v1/status/health", "")
    assert health["data"]["simulated"] is own["data"]["simulated"] is True


def test_a_backfill_asks_for_pages_of_prices_and_rates(pair: Pair) -> None:
    """Three hours of three histories were three requests."""
    pages = [path for path in pair.upstream.asked if "rate-history" in path or "price-history" in path]
    assert len(pages) == 3
    assert all("limit=200" in path for path in pages)


def test_a_backfill_that_is_run_again_asks_for_nothing(pair: Pair) -> None:
    pair.upstream.asked.clear()
    instants = instants_to_fill(START, END, HOUR, at_ends=True)
    assert [unix_second(instant) - NOON for instant in instants] == [-3 * 3600 - 1, -2 * 3600 - 1]
    assert backfill(JOBS["prices"], pair.source, pair.follower.store, instants) == 0
    assert pair.upstream.asked == []


def test_liquidations_have_the_legs_that_upstream_knows(pair: Pair) -> None:
    legs = "SELECT uuid, leg FROM event_version FINAL WHERE address = {address:String} AND leg != '' ORDER BY uuid"

    def rows(settings: Settings) -> Sequence[Sequence[object]]:
        with clickhouse.client(settings) as own:
            return own.query(legs, parameters={"address": liquidated()}).result_rows

    ours = rows(pair.follower.settings)
    assert ours == rows(pair.upstream.settings)
    assert {leg for _, leg in ours} == {"debt", "collateral"}


def test_nothing_is_said_of_an_address_that_is_not_followed(pair: Pair) -> None:
    for path in ("user", "tx-history"):
        answer = pair.follower.client.simulate_get(f"/api/v1/users/0x{'f' * 40}/{path}")
        assert "this address is not among them" in expect_error(answer, 404, "entity_not_found", "user")
