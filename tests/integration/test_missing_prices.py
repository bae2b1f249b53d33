"""A price that the source leaves out: carried for its age, then unknown, by jobs, backfills and recompute alike."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import cycle
from typing import Any

import pytest

from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.market.assets import Asset, AssetGroup, AssetKind
from analytics_service.market.instants import unix_second
from analytics_service.market.markets import CollateralConfig, CollateralMarket, LendMarket, Market
from analytics_service.market.positions import Account, Balance, Holding, LendPosition, Position
from analytics_service.market.prices import Price
from analytics_service.state.view import Views
from jobs.recompute import day_by_day, recompute
from jobs.registry import JOBS
from jobs.runner import backfill, take_snapshot
from tests import clickhouse
from tests.doubles import FreshHeads
from tests.integration.databases import database
from tests.integration.handmade import NOON, HandMade, debt_market
from tests.integration.pages import commit
from tests.integration.routes import Client, client_of

D = Decimal
A, B, X, RX, DARK = (f"native;{key}" for key in ("a", "b", "x", "rx", "dark"))
EVERY, AGE = timedelta(minutes=30), timedelta(hours=1)
# Snapshots are taken at these multiples of half an hour; at 1 only of prices, so that all assets are listed. At 2 the
# price of 0 is an hour old.
NUMBERS = (2, 3, 4, 5)
TAKEN = {"prices": (0, 1, 2, 3, 4, 5), "ptoken": (0,), "markets": NUMBERS, "positions": NUMBERS}
ALICE, BOB, CAROL, DAN = ("0x" + letter * 40 for letter in "abcd")


def instant_of(number: int) -> datetime:
    return NOON + number * EVERY


LATER = unix_second(instant_of(99))


def asset(key: str, **links: Any) -> Asset:
    return replace(Asset(AssetGroup.NATIVE, key, key, key.upper(), key, 0, 2), **links)


ASSETS = (
    asset("a"),
    asset("b"),
    asset("dark"),
    asset("uptk"),
    asset("x", receipt_asset=RX),
    asset("rx", kind=AssetKind.RECEIPT, origin_asset=X),
)
USD = {A: D(2), B: D(1), X: D(3)}
RULES = CollateralConfig(True, D("0.7"), D("0.8"), None, D(0), D(0))


def posted(balance: int) -> CollateralMarket:
    return CollateralMarket(RULES, balance, balance)


# 2000 USD of a, 300 of lent x, 150 of posted x and 30 of its receipts; 500 USD of b and 30 of x are owed.
OTHERS = (
    Market(A, None, posted(1000), None),
    Market(B, LendMarket(D(0), 700, 700), None, debt_market(balance=500, shares=500)),
    Market(DARK, None, posted(7), None),
)
OF_X = (
    Market(X, LendMarket(D(0), 100, 100), posted(50), debt_market(balance=10, shares=10)),
    Market(RX, None, posted(10), None),
)


def holder(address: str, collateral: tuple[str, int], debt: tuple[str, int], *more: Account) -> Position:
    return Position(address, (Account(0, (Holding(*collateral),), (Holding(*debt),)), *more), wallet=(Balance(A, 5),))


POSITIONS = (
    # Health 0.8: 100 USD of collateral for 100 USD.
    holder(ALICE, (A, 50), (B, 100)),
    # Health 1.2, and an account that has x and owes nothing.
    replace(
        holder(BOB, (X, 30), (B, 60), Account(1, (Holding(RX, 10),))),
        lends=(LendPosition(X, 9, 0), LendPosition(B, 5, 0)),
        wallet=(Balance(X, 2), Balance(A, 5)),
    ),
    # Health 16/15.
    holder(CAROL, (A, 20), (X, 10)),
    # Health 0, because what it has posted never had a price.
    holder(DAN, (DARK, 7), (B, 40)),
)


@dataclass
class Forgetful(HandMade):
    """Leaves the price of x out at some instants, and at one of these x itself, but not its market. At the last one, x
    is not listed, and has no market."""

    rejections: frozenset[int] = frozenset()

    def _is_over(self, at: datetime) -> bool:
        return at >= instant_of(OVER)

    def assets(self, at: datetime) -> Sequence[Asset]:
        is_listed = not self._is_over(at) and (at != instant_of(2) or 2 not in self.rejections)
        return [asset for asset in ASSETS if is_listed or asset.id not in (X, RX)]

    def prices(self, at: datetime) -> Sequence[Price]:
        missing = (at - NOON) // EVERY in self.rejections or self._is_over(at)
        return [Price(asset_id, at, usd) for asset_id, usd in USD.items() if asset_id != X or not missing]

    def markets(self, at: datetime) -> Sequence[Market]:
        return OTHERS if self._is_over(at) else (*OTHERS, *OF_X)


# At 1 and 2 the price of 0 counts. Half an hour later it is unknown.
SOURCE = Forgetful(positions_=POSITIONS, rejections=frozenset({1, 2, 3}))
WHOLE = replace(SOURCE, rejections=frozenset())
UNKNOWN, OVER = 3, 5
KNOWN = [number for number in NUMBERS if number != UNKNOWN]
USER = f"/api/v1/users/{BOB}"
RISK, COLLATERAL = "/api/v1/analytics/market/risk", "/api/v1/markets/history/collateral"
PATHS = ("/api/v1/markets", "/api/v1/markets/supply", "/api/v1/markets/tvl", RISK,
         "/api/v1/analytics/market/borrowers", f"{USER}/user", f"{USER}/markets/borrow/accounts/0/health")  # fmt: skip


def data(client: Client, path: str, query: str = "with_text=true&with_value=true") -> Any:
    answer = client.simulate_get(path, query_string=query if path.startswith(USER) else query.partition("&with_v")[0])
    assert answer.status_code == 200, answer.text
    return answer.json["data"]


def at(number: int) -> str:
    return f"at={unix_second(instant_of(number))}&with_text=true&with_value=true"


def observed(settings: Settings) -> dict[str, list[Any]]:
    """All observations, and the prices of markets, without their runs."""
    counts = {
        "observation": "true",
        "market_price": "(observed_at, version) IN (SELECT at, version FROM snapshot FINAL)",
    }
    with clickhouse.client(settings) as own:
        return {
            table: own.query(f"SELECT * EXCEPT version FROM {table} FINAL WHERE {only} ORDER BY ALL").result_rows
            for table, only in counts.items()
        }


@dataclass
class Fed:
    """A store that jobs have fed, the service on it, and what that answered after some instants, by path."""

    settings: Settings
    store: Store
    client: Client
    answers: dict[int, Mapping[str, Any]] = field(default_factory=dict)

    def history(self, name: str, asset_id: str | None = None) -> dict[int, Decimal]:
        """The known values of a history, by the number of their instant."""
        rows = [row[2:] for row in observed(self.settings)["observation"] if row[:2] == (name, asset_id or "")]
        return {(at - NOON) // EVERY: value for at, value, known in rows if known}


@contextmanager
def aging(server: Settings, name: str) -> Iterator[Fed]:
    """A store without rows, in which prices count for an hour."""
    settings = replace(server, clickhouse_database=f"test_{name}", price_max_age=int(AGE.total_seconds()))
    with database(settings) as store:
        yield Fed(settings, store, client_of(settings, store, LATER, FreshHeads))


@pytest.fixture(scope="module")
def live(server: Settings) -> Iterator[Fed]:
    with aging(server, "forgetful") as own:
        for number in TAKEN["prices"]:
            for dataset, numbers in TAKEN.items():
                if number in numbers:
                    take_snapshot(JOBS[dataset], SOURCE, own.store, instant_of(number))
            paths = {2: PATHS, UNKNOWN: PATHS, OVER: PATHS[:2]}.get(number, ())
            own.answers[number] = {path: data(own.client, path) for path in paths}
        yield own


@pytest.fixture(scope="module")
def whole(server: Settings) -> Iterator[Fed]:
    """What a backfill makes of a source that leaves nothing out."""
    with aging(server, "never_forgetful") as own:
        for dataset, numbers in TAKEN.items():
            backfill(JOBS[dataset], WHOLE, own.store, [instant_of(number) for number in numbers])
        own.answers = {number: {path: data(own.client, path, at(number)) for path in PATHS} for number in (2, UNKNOWN)}
        yield own


def test_as_long_as_the_price_is_carried_nothing_differs(live: Fed, whole: Fed) -> None:
    """In the present, and in all that is written."""
    assert live.answers[2] == whole.answers[2]
    unknown = instant_of(UNKNOWN)
    for table, column in (("observation", 2), ("market_price", 0)):
        rows, expected = observed(live.settings)[table], observed(whole.settings)[table]
        prices = [row for row in expected if row[0] == "price" and row not in rows]
        assert len(prices) == (3 if table == "observation" else 0)
        assert [row for row in rows if row[column] != unknown] == [
            row for row in expected if row[column] != unknown and row not in prices
        ]


def test_sums_with_an_unknown_price_are_null(live: Fed) -> None:
    answers = live.answers[UNKNOWN]
    supply = answers["/api/v1/markets/supply"]
    assert supply["tvl"] == {"tvl": None, "net_tvl": None, "extra": {"text": {"tvl": "N/A", "net_tvl": "N/A"}}}
    assert supply["lend"]["principal"] is None
    assert supply["borrow_debt"]["balance"] is None
    pools = supply["borrow_collateral"].values()
    assert [(pool["balance"], pool["extra"]["text"]["shares"]) for pool in pools] == [(None, "N/A")] * 3
    assert answers["/api/v1/markets/tvl"]["total_value"] is None
    assert answers["/api/v1/markets"]["tvl"] == supply["tvl"]
    # 2000 USD of a and 700 of b are left, and 500 of b are owed.
    tvl = live.answers[OVER]["/api/v1/markets/supply"]["tvl"]
    assert (tvl["tvl"], tvl["net_tvl"]) == ("2700", "2200")


def test_accounts_with_an_unknown_price_are_in_no_figure_of_risk(live: Fed, whole: Fed) -> None:
    """Alice and Dan are left. What Dan has posted never had a price."""
    known, unknown = (fed.answers[3][RISK] for fed in (whole, live))
    counted = ("accounts", "accounts_with_debt", "unpriced_debt_accounts", "unpriced_collateral_accounts")
    assert [known[name] for name in counted] == [5, 4, 0, 1]
    assert [unknown[name] for name in counted] == [2, 2, 1, 3]
    assert (unknown["collateral_value"], unknown["debt_value"]) == ("100", "140")
    assert (unknown["liquidatable"]["accounts"], unknown["liquidatable"]["debt_value"]) == (2, "140")
    assert sum(part["accounts"] for part in unknown["histogram"]) == 2
    listed = live.answers[3]["/api/v1/analytics/market/borrowers"]
    values = ("address", "collateral_value", "debt_value", "health")
    assert [[one[name] for name in values] for one in listed[2:]] == [
        [BOB, None, "60", None],
        [CAROL, "40", None, None],
    ]
    assert [one["address"] for one in listed[:2]] == [ALICE, DAN]


def test_health_and_sums_of_a_user_with_an_unknown_price_are_null(live: Fed) -> None:
    """An account without debt, too, as its collateral might have any value."""
    known, unknown = (live.answers[number][f"{USER}/user"] for number in (2, 3))
    nothing = dict.fromkeys(("base", "boost", "result"), None)
    texts = dict.fromkeys(nothing, "N/A")
    for account in unknown["markets"]["borrow"]["accounts"]:
        assert account["health"] == {**nothing, "extra": {"text": texts}}
    assert live.answers[3][PATHS[-1]] == {**nothing, "extra": {"text": texts}}
    # 2 x at 3 USD and 5 a at 2 USD.
    assert (known["wallets"]["total_value"], unknown["wallets"]["total_value"]) == ("16", None)
    assert unknown["wallets"]["extra"]["text"]["total_value"] == "N/A"
    assert known["markets"]["borrow"]["accounts"][0]["health"]["result"] == "1.2"


def test_histories_have_no_value_of_what_is_unknown(live: Fed, whole: Fed) -> None:
    for name in ("tvl", "net_tvl"):
        assert sorted(live.history(name)) == KNOWN
    for name in ("deposits_usd", "collateral_usd", "debt_usd"):
        # It ends with a zero, although what came before it was unknown.
        assert sorted(live.history(name, X)) == KNOWN
        assert live.history(name, X)[OVER] == 0
    assert sorted(live.history("collateral_usd", RX)) == KNOWN
    assert sorted(live.history("utilization", X)) == [*NUMBERS[:-1]]
    assert sorted(live.history("collateral_usd", A)) == [*NUMBERS]
    # Alice, Carol and Dan are at risk, unless Carol is unknown. What Dan has posted never had a price.
    assert live.history("accounts_at_risk") == dict.fromkeys(KNOWN, 3)
    for name in ("debt_at_risk", "liquidatable_debt"):
        assert live.history(name) == {number: whole.history(name)[number] for number in KNOWN}
    with clickhouse.client(live.settings) as own:
        for view in ("tvl", f"deposits_usd WHERE asset_id = '{X}'", "debt_at_risk"):
            rows = own.query(f"SELECT observed_at FROM {view} ORDER BY ALL").result_rows
            assert [(at.replace(tzinfo=UTC) - NOON) // EVERY for (at,) in rows] == KNOWN


AGGREGATES, FILLS = ("last", "first", "min", "max", "mean", "ohlc"), ("previous", "none", "last")


@pytest.mark.parametrize("memory", [0, 10**8])
def test_histories_are_null_while_a_value_is_unknown(live: Fed, memory: int) -> None:
    """From the snapshot that lacks it to the next one that has it, however points are made."""
    client = client_of(replace(live.settings, history_memory=memory, answer_memory=0), live.store, LATER, FreshHeads)
    start, end = (unix_second(instant_of(number)) for number in (2, 5))
    asked = f"start={start}&end={end}&period=min&interval=30"
    for agg, fill in zip(AGGREGATES, cycle(FILLS), strict=False):
        query = f"{asked}&agg={agg}&fill={fill}"
        (series,) = data(client, COLLATERAL, f"{query}&asset_ids={X}")["series"]
        sums = data(client, "/api/v1/markets/history/tvl", query)
        for points in (series["points"], sums["points"]):
            shown = [[value for name, value in point.items() if name not in ("t", "n")] for point in points]
            nothing = [number for number, values in enumerate(shown, 2) if values == [None] * len(values)]
            assert nothing == [3], (agg, fill)
        client.app.memory.wait()


def test_the_mean_of_a_sum_is_that_of_the_seconds_in_which_it_is_known(settings: Settings) -> None:
    """1000 a at 2 USD, and 700 b at 1 USD. The price of b is unknown from 13:30 on; at 14:00 it is 2 USD."""

    class Quoting(HandMade):
        def prices(self, at: datetime) -> Sequence[Price]:
            number = (at - NOON) // EVERY
            quoted = {A: D(2), B: {0: D(1)}.get(number, D(2))} if number in (0, 4, 6) else {A: D(2)}
            return [Price(asset_id, at, usd) for asset_id, usd in quoted.items()]

    with database(replace(settings, price_max_age=int(AGE.total_seconds()))) as store:
        for dataset in ("prices", "markets"):
            instants = [instant_of(number) for number in (0, 1, 2, 3, 4, 6)]
            backfill(JOBS[dataset], Quoting(assets_=ASSETS, markets_=OTHERS), store, instants)
        client = client_of(settings, store, LATER, FreshHeads)
        start = unix_second(NOON)
        asked = f"start={start}&end={start + 3 * 3600 - 1}&period=h&interval=3&agg="
        means = {
            agg: data(client, "/api/v1/markets/history/tvl", asked + agg)["points"] for agg in ("mean", "last", "ohlc")
        }
    # 2700 for an hour and a half, and 3400 for one.
    assert [point["v"] for point in means["mean"]] == ["2980"]
    assert [point["v"] for point in means["last"]] == ["3400"]
    assert [[point[name] for name in "ohlcn"] for point in means["ohlc"]] == [["2700", "3400", "2700", "3400", 4]]


def test_a_moment_shows_what_the_present_showed(live: Fed) -> None:
    for path in PATHS:
        assert data(live.client, path, at(UNKNOWN)) == live.answers[UNKNOWN][path], path


def test_an_assumed_price_makes_an_asset_known(live: Fed, whole: Fed) -> None:
    at = unix_second(instant_of(3))
    path, query = RISK, f"at={at}&prices=X:3"
    assumed, known = (data(fed.client, path, query) for fed in (live, whole))
    assert [(one["price"], one["assumed_price"]) for one in assumed.pop("prices")] == [(None, "3")] * 2
    known.pop("prices")
    assert assumed == known
    for asked, message in ((f"at={at}&prices=X:5%2525", "no price to change"), (f"at={at}&asset_id={X}", "a price")):
        own = path if "prices" in asked else f"{path}/ladder"
        answer = live.client.simulate_get(own, query_string=asked.replace("%2525", "%25"))
        assert message in answer.json["error"]["message"]


def test_a_backfill_gives_what_live_jobs_gave(settings: Settings, live: Fed) -> None:
    """In whatever order its parts are filled."""
    own = replace(settings, price_max_age=int(AGE.total_seconds()))
    with database(own) as store:
        for dataset in ("prices", "markets"):
            for chunk in (TAKEN[dataset][2:], TAKEN[dataset][:2]):
                backfill(JOBS[dataset], SOURCE, store, [instant_of(number) for number in chunk])
        risk = ("debt_at_risk", "accounts_at_risk", "liquidatable_debt", "bad_debt")
        rows = observed(live.settings)
        rows["observation"] = [row for row in rows["observation"] if row[0] not in risk]
        assert observed(own) == rows


def test_what_is_computed_again_is_what_live_jobs_gave(live: Fed, whole: Fed) -> None:
    """As if prices were carried for a day, when none is missing; and as before again."""

    def compute() -> int:
        portions = day_by_day(live.store, ("markets", "positions"), NOON, instant_of(OVER) + timedelta(seconds=1))
        return sum(recompute(live.store, portion) for portion in portions)

    before, expected = observed(live.settings), observed(whole.settings)
    live.store.price_max_age = timedelta(days=1)
    # At an instant of markets and of positions.
    assert compute() == 2
    carried = observed(live.settings)
    assert carried["market_price"] == expected["market_price"]
    assert carried["observation"] == [
        row for row in expected["observation"] if row[0] != "price" or row in before["observation"]
    ]
    live.store.price_max_age = AGE
    assert compute() == 2
    assert observed(live.settings) == before


class Paused(HandMade):
    """Repeats a price that it observed at noon."""

    def prices(self, at: datetime) -> Sequence[Price]:
        return [Price(A, NOON, D(2))]


def test_a_repeated_price_is_as_old_as_its_source_says(settings: Settings) -> None:
    """Of a greatest age of an hour it is unknown a minute later, and so is what it values."""
    source = Paused(assets_=ASSETS, markets_=OTHERS[:1])
    with database(replace(settings, price_max_age=3600)) as store:
        for minute, tvl in ((60, "2000"), (61, None)):
            at = NOON + timedelta(minutes=minute)
            for dataset in ("prices", "markets"):
                take_snapshot(JOBS[dataset], source, store, at)
            client = client_of(settings, store, unix_second(at), FreshHeads)
            (price,) = data(client, "/api/v1/assets/prices")
            assert price["price"]["last_updated_at"] == "2025-03-01T12:00:00Z"
            for query in ("", f"at={unix_second(at)}"):
                assert data(client, "/api/v1/markets/supply", query)["tvl"]["tvl"] == tvl, minute
            faults = data(client, "/api/v1/status/health", "")["faults"]
            assert any("no recent price of A (last 2025-03-01T12:00:00Z)" in fault for fault in faults) is (not tvl)
        with clickhouse.client(replace(settings, clickhouse_database=store.database)) as own:
            counts = own.query("SELECT (SELECT count() FROM price), (SELECT count() FROM tvl)").first_row
        assert counts == (1, 1)


def test_imported_prices_are_never_too_old(store: Store) -> None:
    """Nothing says that one is missing, before there is a snapshot of prices."""
    seconds = [unix_second(NOON) - 40 * 86_400, unix_second(NOON)]
    commit(store, {f"token;{second}": [(second, D(2))] for second in seconds}, "import")
    assert [*Views(store, FreshHeads(store)).newest().quoted.values()] == [D(2), D(2)]
    take_snapshot(JOBS["prices"], replace(SOURCE, prices_={}), store, instant_of(0))
    quoted = Views(store, FreshHeads(store)).newest().quoted
    assert [quoted[f"token;{second}"] for second in seconds] == [None, D(2)]
