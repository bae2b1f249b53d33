"""The history of an address: at the end of each bucket, what the user object has as of then (rule 6.9)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Any
from urllib.parse import urlencode, urljoin

import pytest

from analytics_service.config.settings import Settings
from analytics_service.market.portfolio import Metric
from analytics_service.market.positions import Balance, Position
from analytics_service.market.prices import Price
from analytics_service.sources.simulated import RICH_ADDRESS
from jobs.registry import JOBS
from jobs.runner import backfill
from tests import clickhouse
from tests.integration.databases import database
from tests.integration.lending import ETH, ORB, Lending
from tests.integration.routes import NOON, Client, at, client_of

Json = Any
D = Decimal
MINUTE = 60
EVERYTHING = ("prices", "markets", "ptoken", "positions")
# Datasets that have a snapshot some minutes after noon. From minute 65 on, the last price of ETH is too old.
TICKS: Mapping[int, Sequence[str]] = {
    0: EVERYTHING,
    7: ["prices"],
    12: ["markets", "positions"],
    25: ["positions"],
    80: EVERYTHING,
}
LATER = NOON + 100 * MINUTE
OTHER = "0x" + "5" * 40
# The address without a debt, and one that nobody has seen.
BRIEF, NOBODY = "0x" + "6" * 40, "0x" + "7" * 40


class Eventful(Lending):
    """A protocol in which positions change all the time, one ends, and ETH loses its price."""

    def prices(self, at: datetime) -> Sequence[Price]:
        is_lost = at.timestamp() > NOON + 10 * MINUTE
        return [price for price in super().prices(at) if not is_lost or price.asset_id != ETH]

    def positions(self, at: datetime) -> Iterator[Position]:
        minute = (int(at.timestamp()) - NOON) // MINUTE
        for position in super().positions(at):
            if position.address != RICH_ADDRESS:
                continue
            yield replace(position, unclaimed=10**6 * minute)
            yield Position(OTHER, wallet=(Balance(ORB, 10**8 + minute), Balance("native;unknown", 7)))
            if minute < 25:
                yield Position(BRIEF, (replace(position.accounts[0], debts=()),), position.lends)


@pytest.fixture(scope="module")
def settings(server: Settings) -> Settings:
    """Prices are known for an hour."""
    return replace(server, clickhouse_database="test_course", price_max_age=3600)


@pytest.fixture(scope="module")
def client(settings: Settings) -> Iterator[Client]:
    """The service over an hour of snapshots at different instants."""
    with database(settings, views=True) as store:
        for dataset in EVERYTHING:
            minutes = [minute for minute, datasets in TICKS.items() if dataset in datasets]
            backfill(JOBS[dataset], Eventful(NOON), store, [at(NOON + minute * MINUTE) for minute in minutes])
        yield client_of(settings, store, LATER)


def ask(client: Client, address: str = RICH_ADDRESS, status: int = 200, **query: object) -> Any:
    page = {"start": NOON - 10 * MINUTE, "end": NOON + 95 * MINUTE}
    width = {} if "period" in query else {"period": "min", "interval": 5}
    asked = {"metric": "net-value", **page, **width, **query}
    answer = client.simulate_get(f"/api/v1/users/{address}/history", query_string=urlencode(asked))
    assert answer.status_code == status, answer.text
    return answer


def values(client: Client, address: str = RICH_ADDRESS, **query: object) -> dict[int, str | None]:
    """The values of a page by the minute after noon at which their bucket begins."""
    points = ask(client, address, **query).json["data"]["points"]
    return {(point["t"] - NOON) // MINUTE: point["v"] for point in points}


def total(numbers: Sequence[str | None]) -> Decimal | None:
    return None if None in numbers else sum((D(number) for number in numbers if number is not None), D(0))


def of_user(user: Json, prices: Mapping[str, str]) -> dict[str, Decimal | None]:
    """The metrics of a user object, from its USD values; deposits are valued at their asset's price."""

    def usd(items: Sequence[Json], field: str) -> Decimal | None:
        return total([item["extra"]["value"][field] for item in items])

    def lent(part: str) -> Decimal | None:
        if usd([pool["receipt_amounts"] for pool in pools], part) is None:
            return None
        amounts = [(pool["asset_info"], D(pool["origin_equivalent"][part])) for pool in pools]
        return sum(
            (
                amount.scaleb(-info["metadata"]["decimals_denom"]) * D(prices[info["asset"]["id"]])
                for info, amount in amounts
            ),
            D(0),
        )

    totals, pools = user["markets"]["borrow"]["totals"], user["markets"]["lend"]["asset_pools"]
    collateral, debt = usd(totals["collaterals"], "principal"), usd(totals["debts"], "principal")
    health = [account["health"]["result"] for account in user["markets"]["borrow"]["accounts"]]
    receipts = {pool["asset_info"]["classification"]["protocol_receipt_asset"]["id"] for pool in pools}
    wallet = [one["values"] for one in user["wallets"]["balances"] if one["asset"]["id"] not in receipts]
    staking = user["ptoken"]["staking"]
    staked = [usd([staking], name) for name in ("bonding_sum", "unclaimed", "claimable_rewards", "claimable_unbonding")]
    wallet_usd = usd([one for one in wallet if one["kind"] == "known"], "amount")
    parts = [collateral, lent("held"), wallet_usd, *staked, usd([staking["unbonding"]], "amount_sum")]
    known = [part for part in parts if part is not None]
    finite = [D(one) for one in health if one is not None and one != "Infinity"]
    return {
        "collateral": collateral,
        "debt": debt,
        "deposits": lent("total"),
        "ltv": None if debt is None or not collateral else debt / collateral,
        "health": None if None in health else min(finite, default=None),
        "net-value": None if debt is None or None in parts else sum(known, -debt),
    }


def metrics(client: Client, address: str, second: int) -> dict[str, Decimal | None]:
    """The metrics of an address as of a second."""
    query = urlencode({"at": second, "with_value": "true"})
    answer = client.simulate_get(f"/api/v1/users/{address}/user", query_string=query)
    if answer.status_code != 200:
        return dict.fromkeys(Metric)
    priced = client.simulate_get("/api/v1/assets/prices", query_string=f"at={second}").json["data"]
    return of_user(answer.json["data"], {one["asset"]["id"]: one["price"]["price"] for one in priced})


# Buckets before all snapshots, after most of them, after the price of ETH is too old, and at the end.
BUCKETS = (-5, 5, 10, 25, 65, 80, 85)


@pytest.mark.parametrize("address", [RICH_ADDRESS, OTHER, BRIEF])
def test_a_bucket_has_what_the_user_object_has_at_its_last_second(client: Client, address: str) -> None:
    expected = {minute: metrics(client, address, NOON + (minute + 5) * MINUTE - 1) for minute in BUCKETS[:-1]}
    expected[BUCKETS[-1]] = dict.fromkeys(Metric)
    for metric in Metric:
        shown = values(client, address, metric=metric)
        assert [*shown] == [*range(-10, 100, 5)]
        for minute, wanted in expected.items():
            value, right = shown[minute], wanted[metric]
            assert (value is None) == (right is None), (metric, minute)
            assert value is None or right is None or abs(D(value) - right) <= D("1e-15"), (metric, minute)


def test_buckets_without_a_snapshot_of_positions_repeat_the_value_before_or_are_null(client: Client) -> None:
    carried, own = values(client, OTHER), values(client, OTHER, fill="none")
    with_positions = {minute - minute % 5 for minute, datasets in TICKS.items() if "positions" in datasets}
    assert {minute for minute, value in own.items() if value is not None} == with_positions
    assert own == {minute: value if minute in with_positions else None for minute, value in carried.items()}
    # Prices change without a snapshot of positions, and nothing is carried beyond the newest.
    assert carried[0] != carried[5]
    assert [minute for minute, value in carried.items() if value is None] == [-10, -5, 85, 90, 95]


def test_a_change_is_that_since_the_end_of_the_bucket_before(client: Client) -> None:
    """Also in the first bucket of a page, and where the bucket before has no snapshot of positions."""
    last, page = values(client, OTHER), {"agg": "delta", "start": NOON + 5 * MINUTE}
    held = {minute: D(value) for minute, value in last.items() if value is not None}
    wanted = {minute: held[minute] - held[minute - 5] for minute in range(5, 85, 5)}
    carried, own = values(client, OTHER, **page), values(client, OTHER, **page, fill="none")
    assert {minute: D(value) for minute, value in carried.items() if value is not None} == wanted
    assert {minute: D(value) for minute, value in own.items() if value is not None} == {
        minute: wanted[minute] for minute in (10, 25, 80)
    }
    # What precedes the first snapshot is unknown.
    assert values(client, OTHER, agg="delta")[0] is None
    # The last value is carried to the end of the range if asked for.
    assert values(client, OTHER, fill="last") == {**last, **dict.fromkeys((85, 90, 95), last[80])}
    assert values(client, OTHER, fill="last", agg="delta")[95] == "0"


def test_pages_and_automatic_buckets_are_those_of_histories(client: Client) -> None:
    whole = ask(client, limit=400)
    first = ask(client, limit=9)
    assert first.json["data"]["pagination"] == {"interval_count": 22, "next_offset": 9}
    path = f"/api/v1/users/{RICH_ADDRESS}/history"
    following = client.simulate_get(urljoin(path, first.headers["link"].split(">")[0][1:]))
    assert first.json["data"]["points"] + following.json["data"]["points"] == whole.json["data"]["points"][:18]
    chosen = ask(client, period="auto", points=10).json["data"]["range"]["interval"]
    assert chosen == {"unit": "min", "value": 15}
    file = ask(client, format="csv", digits=3)
    assert f'filename="{RICH_ADDRESS}-net-value-{NOON - 600}-' in file.headers["content-disposition"]
    lines = file.text.split("\r\n")
    assert lines[0] == "t,time,asset_id,symbol,v"
    assert lines[1] == f"{NOON - 600},2025-03-01T11:50:00+00:00,,,"
    assert len(lines[4].split(",")[-1].strip("0")) <= 4


def test_it_is_validated_and_dated_like_what_it_is_made_from(client: Client) -> None:
    answer = ask(client, end=NOON + 28 * MINUTE)
    dated = {"markets": 12, "positions": 25, "prices": 7, "ptoken": 0}
    expected = (f"{name}=@{NOON + late * MINUTE}" for name, late in dated.items())
    assert answer.headers["as-of"] == ", ".join(expected)
    again = {"If-None-Match": answer.headers["etag"]}
    query = f"metric=net-value&start={NOON - 600}&end={NOON + 28 * MINUTE}&period=min&interval=5"
    path = f"/api/v1/users/{RICH_ADDRESS}/history"
    assert client.simulate_get(path, query_string=query, headers=again).status_code == 304
    assert ask(client, metric="debt").headers["as-of"].count("=@") == 3


def test_an_account_has_its_own_collateral_debt_health_and_ratio(client: Client) -> None:
    accounts = (0, 1)
    debts = [values(client, metric="debt", account_index=index)[0] for index in accounts]
    assert total(debts) == total([values(client, metric="debt")[0]])
    least = [D(values(client, metric="health", account_index=index)[0] or "Infinity") for index in accounts]
    assert min(least) == total([values(client, metric="health")[0]])
    missing = ask(client, metric="ltv", account_index=77, status=404).json["error"]
    assert missing["kind"] == "entity_not_found"
    refused = ask(client, metric="deposits", account_index=0, status=400).json["error"]["message"]
    assert refused.endswith("needs one of these metrics: collateral, debt, health, ltv.")


def test_an_address_that_nobody_has_seen_has_nothing(client: Client) -> None:
    assert {*values(client, NOBODY).values()} == {None, "0"}
    assert {*values(client, NOBODY, metric="health").values()} == {None}


@pytest.mark.parametrize(
    ("query", "allowed"),
    [
        ({"metric": "worth"}, "net-value, collateral, debt, deposits, health, ltv"),
        ({"agg": "mean"}, "last"),
        ({"limit": 401}, "400"),
        ({"start": NOON - 401 * MINUTE, "end": NOON, "interval": 1, "format": "csv"}, "at most 400 points"),
        ({"period": "auto", "points": 401}, "400"),
        ({"asset_ids": "native;a"}, "metric, account_index, start"),
    ],
)
def test_a_wrong_parameter_says_what_is_allowed(client: Client, query: dict[str, object], allowed: str) -> None:
    assert allowed in ask(client, status=400, **query).json["error"]["message"]


def test_researchers_see_the_accounts_of_an_address_at_each_snapshot_of_positions(
    client: Client, settings: Settings
) -> None:
    with clickhouse.client(settings) as own:
        sql = f"SELECT * FROM account_history(address = '{RICH_ADDRESS.upper()}') ORDER BY observed_at, account_index"
        rows = list(own.query(sql).named_results())
    with_positions = [minute for minute, datasets in TICKS.items() if "positions" in datasets]
    assert [(row["address"], row["account_index"], row["observed_at"]) for row in rows] == [
        (RICH_ADDRESS, index, at(NOON + one * MINUTE)) for one in with_positions for index in (0, 1)
    ]
    for name, metric in {"collateral_usd": "collateral", "debt_usd": "debt", "ltv": "ltv", "health": "health"}.items():
        shown = values(client, metric=metric, account_index=0, interval=1, period="min", fill="none")
        for row, minute in zip(rows[::2], with_positions, strict=True):
            wanted = shown[minute]
            assert row[name] == (None if wanted is None else pytest.approx(float(wanted), rel=1e-12)), (name, minute)
