"""What the store has lost is missed: answers are what they were, or 503, and whoever looks is told (rule 8.19)."""

import random
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import falcon.testing
import pytest
from click.testing import CliRunner

from analytics_service.cli.main import cli
from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.market.instants import format_instant, from_unix
from analytics_service.market.kinds import FOREVER
from analytics_service.sources.simulated import RICH_ADDRESS
from analytics_service.sources.simulated.source import SimulatedSource
from analytics_service.store.ledger import read_ledger
from analytics_service.store.loss_check import check
from analytics_service.store.losses import Loss
from jobs.recompute import plan, replace_snapshots
from jobs.registry import JOBS
from tests import clickhouse
from tests.doubles import FreshHeads
from tests.integration.broken import break_parts, delete_broken, parts_of
from tests.integration.conftest import Simulated
from tests.integration.databases import copied
from tests.integration.routes import (
    CONTRACT,
    COURSE,
    HISTORIES,
    NOON,
    PRICES,
    ROUTES,
    STATES,
    Client,
    client_of,
    expect_error,
    get,
)

_TABLES = "SELECT name FROM system.tables WHERE database = currentDatabase() AND engine LIKE '%MergeTree' ORDER BY name"
_DAYS = "start=2025-01-01&end=2025-03-01T12:00:00Z&period=d"
_MORNING = "start=2025-03-01T09:00:00Z&end=2025-03-01T12:00:00Z&period=min&interval=5"
_RANGES = (
    _DAYS,
    f"{_DAYS}&agg=ohlc",
    "start=2025-01-10&end=2025-01-12&period=h",
    "start=2025-02-20&end=2025-02-22&period=h&agg=mean",
    _MORNING,
    "start=2025-03-01T11:30:00Z&end=2025-03-01T12:00:00Z&period=min&interval=15&agg=delta",
)
_MOMENTS = (NOON, NOON - 1800, NOON - 3600, NOON - 7200)
_QUESTIONS = [
    *((path, ROUTES[path].query) for path in STATES),
    *((path, f"{ROUTES[path].query}&at={moment}".removeprefix("&")) for path in STATES for moment in _MOMENTS),
    *((path, span) for path in HISTORIES for span in _RANGES),
    (COURSE, f"metric=net-value&{_MORNING}"),
]
README = Path(__file__).parents[2] / "analytics_service" / "cli" / "README.md"
_LOST = "The store has lost data that this answer needs: rows of "
_MARKETS, _TVL = "/api/v1/markets", "/api/v1/markets/history/tvl"
# What every answer needs.
_NEEDED = {"asset_definition", "snapshot"}


@dataclass(frozen=True)
class Copy:
    """A copy of the simulated protocol, whose parts may be broken."""

    settings: Settings
    store: Store
    own: clickhouse.Client

    def lose(self, table: str, which: slice = slice(None), *, gone: bool = False) -> None:
        break_parts(self.settings, self.own, table, parts_of(self.own, table)[which], gone=gone)

    def client(self) -> Client:
        return client_of(self.settings, self.store)

    @property
    def losses(self) -> Mapping[str, tuple[Loss, ...]]:
        """What is known to be lost."""
        return {dataset: tuple(lost) for dataset, lost in read_ledger(self.store).losses.items() if lost}


@pytest.fixture
def copy(server: Settings, simulated: Simulated) -> Iterator[Copy]:
    settings = replace(server, clickhouse_database="test_losses")
    with copied(settings, simulated.store) as store, clickhouse.client(settings) as own:
        yield Copy(settings, store, own)


def answer_of(client: Client, path: str, query: str) -> object:
    """The answer: the message of a 503, else the body."""
    answer = get(client, path, query)
    return expect_error(answer, 503, "unavailable", "server") if answer.status_code == 503 else answer.json


@pytest.mark.parametrize(
    ("seed", "asked"),
    [(39, 15), *(pytest.param(seed, len(_QUESTIONS), marks=pytest.mark.slow) for seed in range(20, 25))],
)
def test_answers_are_what_they_were_or_503_when_parts_are_lost(
    seed: int, asked: int, copy: Copy, protocol: Client
) -> None:
    chosen = random.Random(seed)
    tables = [name for (name,) in copy.own.query(_TABLES).result_rows if parts_of(copy.own, name)]
    for table in chosen.sample([name for name in tables if name not in _NEEDED], 3):
        parts = parts_of(copy.own, table)
        break_parts(copy.settings, copy.own, table, chosen.sample(parts, chosen.randint(1, len(parts))))
    assert check(copy.store)
    damaged = copy.client()
    health = damaged.simulate_get("/api/v1/status/health").json["data"]
    assert not health["healthy"]
    assert any("lost" in fault for fault in health["faults"])
    for path, query in chosen.sample(_QUESTIONS, asked):
        now = answer_of(damaged, path, query)
        if isinstance(now, str):
            assert now.startswith(_LOST), (path, query)
        else:
            assert now == answer_of(protocol, path, query), (path, query, health["faults"])


def test_rows_without_a_trace_are_missed(copy: Copy) -> None:
    """ClickHouse loads a table whose parts are gone as if it never had them."""
    lost = {
        "rollup": ("prices", PRICES, _MORNING),
        "market_lend": ("markets", _MARKETS, ""),
        "position_change": ("positions", f"/api/v1/users/{RICH_ADDRESS}/wallet/balances", ""),
        "swap_route": ("routes", "/api/v1/swap/routes/all", CONTRACT),
    }
    for table in lost:
        copy.lose(table, gone=True)
    assert check(copy.store)
    client = copy.client()
    for dataset, path, query in lost.values():
        assert dataset in copy.losses
        assert str(answer_of(client, path, query)).startswith(_LOST), path


def test_what_every_answer_needs(copy: Copy) -> None:
    """Histories do without the ledger, but not without the assets."""
    states = [(path, ROUTES[path].query) for path in STATES[:3]] + [(_MARKETS, f"at={NOON - 1800}")]
    for table, history in (("snapshot", 200), ("asset_definition", 503)):
        copy.lose(table)
        assert check(copy.store)
        client = copy.client()
        assert {get(client, *each).status_code for each in states} == {503}
        assert get(client, PRICES, _MORNING).status_code == history
        faults = client.simulate_get("/api/v1/status/health").json["data"]["faults"]
        assert any(re.search(rf"rows of (\w+, )*{table}\b.* are lost", fault) for fault in faults)


def test_a_value_is_not_carried_over_what_is_lost(copy: Copy) -> None:
    """What was observed at 10:00 is lost, and the next values are of 11:00."""
    hour = "toStartOfHour(observed_at) = '2025-03-01 10:00:00'"
    copy.own.command(f"DELETE FROM observation WHERE history = 'tvl' AND {hour}")
    assert check(copy.store)
    assert copy.losses == {"markets": (Loss("tvl", NOON - 7200, NOON - 3601),)}
    client = copy.client()

    def status(start: int, end: int, agg: str = "last") -> int:
        return get(client, _TVL, f"start={start}&end={end}&period=min&interval=15&agg={agg}").status_code

    assert [status(NOON - 9000, NOON - 7201), status(NOON - 5400, NOON - 3601)] == [200, 503]
    assert [status(NOON - 3600, NOON, agg) for agg in ("last", "mean", "ohlc", "delta")] == [200, 200, 200, 503]
    other = get(client, "/api/v1/markets/history/net-tvl", f"start={NOON - 9000}&end={NOON}&period=h")
    assert other.status_code == 200


def test_what_is_taken_again_is_shown_again(copy: Copy) -> None:
    """Also where a worker has kept answers, and an operator finds out as soon as anybody looks."""
    client = client_of(copy.settings, copy.store, heads=FreshHeads)
    asked = [(_MARKETS, ""), (_TVL, _MORNING), (_MARKETS, f"at={NOON - 3600}")]
    before = [answer_of(client, *each) for each in asked]
    copy.lose("market_lend")
    copy.own.command("DELETE FROM observation WHERE history = 'tvl' AND toHour(observed_at) = 11")
    assert check(copy.store)
    assert [type(answer_of(client, *each)) for each in asked] == [str] * 3
    operators = falcon.testing.TestClient(client.app.operators, headers={"Host": "localhost"})
    assert 'analytics_data_losses{dataset="markets"}' in operators.simulate_get("/metrics").text
    start, end = datetime.fromtimestamp(NOON - 7200, UTC), datetime.fromtimestamp(NOON + 1, UTC)
    for portion in plan(copy.store, "markets", start, end):
        replace_snapshots(JOBS["markets"], SimulatedSource("1"), copy.store, portion)
    check(copy.store)
    assert "markets" not in copy.losses
    assert [answer_of(client, *each) for each in asked] == before


def test_what_operators_are_told_brings_all_back(copy: Copy, tmp_path: Path) -> None:
    """At the instants of the snapshots that there were, and without others."""
    asked = [
        *(("/api/v1/analytics/market/borrowers", f"limit=1000&at={at}") for at in _MOMENTS[::2]),
        (COURSE, f"metric=net-value&{_MORNING}"),
        ("/api/v1/analytics/market/history/debt-at-risk", _MORNING),
    ]
    client = copy.client()
    before = [answer_of(client, *each) for each in asked]
    copy.lose("position_change")
    assert check(copy.store)
    (cure,) = [row for row in README.read_text("utf-8").splitlines() if row.startswith("| `position_change`")]
    start = format_instant(from_unix(min(loss.first for loss in copy.losses["positions"])))
    filled = cure.split("|")[2].replace("DATASET", "positions").replace("--start A", f"--start {start}")
    commands = [shlex.split(command) for command in re.findall("`(.*?)`", filled)]
    environ = copy.settings.to_environment({})
    # Nothing is computed from what is left.
    span = ["--start", "2025-03-01", "--end", "2025-03-01"]
    refused = CliRunner().invoke(cli, ["jobs", "recompute", *span], env=environ)
    assert refused.exit_code != 0
    assert "rows of position_change are lost" in str(refused.output) + str(refused.exception)
    for command in commands:
        # Snapshots of the store are of each hour.
        now = datetime.fromtimestamp(NOON, UTC).isoformat()
        words = [now if word == "now" else word for word in command]
        into = ["--into", str(tmp_path)] if command[0] == "remove" else []
        done = CliRunner().invoke(cli, [*words, *into], env=environ, catch_exceptions=False)
        assert done.exit_code == 0, done.output
    delete_broken(copy.settings, copy.own)
    assert not check(copy.store)
    client = copy.client()
    assert [answer_of(client, *each) for each in asked] == before


def test_parts_that_nothing_counts_are_lost_until_they_are_deleted(copy: Copy) -> None:
    """Heads are made again from the ledger, so no answer lacks those."""
    markets = answer_of(copy.client(), _MARKETS, "")
    copy.lose("event_version", slice(1))
    copy.lose("snapshot_head")
    assert check(copy.store)
    losses = {dataset: [(loss.what, loss.last) for loss in lost] for dataset, lost in copy.losses.items()}
    assert losses == {"": [("snapshot_head", FOREVER)], "loans": [("event_version", FOREVER)]}
    client = copy.client()
    assert answer_of(client, _MARKETS, "") == markets
    # The first snapshot has brought the events of before.
    asked = "/api/v1/analytics/market/events", "start=2025-01-31&end=2025-02-01"
    assert get(client, *asked).status_code == 503
    delete_broken(copy.settings, copy.own)
    assert not check(copy.store)
    assert get(copy.client(), *asked).status_code == 200


def test_a_part_whose_sources_are_still_there_is_not_lost(
    settings: Settings, store: Store, client: clickhouse.Client
) -> None:
    """ClickHouse keeps what a part was merged from for some minutes, and loads that instead. Later merges hide nothing,
    and parts that come after a loss have the numbers of those that are lost."""
    copy, table, merge = Copy(settings, store, client), "position_digest", "OPTIMIZE TABLE position_digest FINAL"

    def write() -> None:
        client.command(f"INSERT INTO {table} (address) VALUES ('a')")

    for act in (write, write, lambda: client.command(merge)):
        act()
    copy.lose(table)
    assert len(parts_of(client, table)) == 2
    for _ in range(2):
        assert not check(store)
        client.command(merge)
    client.command(f"TRUNCATE TABLE {table}")
    write()
    copy.lose(table)
    for _ in range(2):
        write()
        client.command(merge)
        assert check(store)
    assert [loss.what for loss in copy.losses[""]] == [table]
