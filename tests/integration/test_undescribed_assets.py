"""Assets that markets and positions name before any snapshot of prices describes them: only their ids are known."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import falcon.testing
import pytest

from analytics_service.app import create_app
from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.errors import OutOfRange
from analytics_service.market.positions import Account, Balance, Holding, LendPosition, Position, Stake
from analytics_service.resources.users import PATHS
from jobs.registry import JOBS
from jobs.runner import take_snapshot
from tests.doubles import FirstHeads
from tests.integration.databases import database
from tests.integration.handmade import ASSETS, NOON, PTOKEN, HandMade

ADDRESS = "0x" + "f" * 40
USER = f"/api/v1/users/{ADDRESS}"
# It has a market of each kind, and no definition; so has the protocol token.
ID = "native;all"
FLAGS = "with_text=true&with_value=true"
POSITION = Position(
    ADDRESS,
    (
        Account(0, (Holding(ID, 5), Holding("token;collateral", 3)), (Holding(ID, 1), Holding("token;debt", 1))),
        Account(1, (Holding("token;collateral", 3),), (Holding("token;debt", 1),)),
    ),
    (LendPosition(ID, 10, 2),),
    (Balance(ID, 4), Balance("token;lend", 6)),
    (Stake(0, 1, 10, cascade=False, transition_at=None, last_stake_acc=Decimal(1)),),
)


@pytest.fixture(scope="module")
def client(server: Settings) -> Iterator[falcon.testing.TestClient]:
    """The service over a snapshot of each dataset, written by no test."""
    settings = replace(server, clickhouse_database="test_undescribed")
    source = HandMade(
        positions_=[POSITION],
        ptoken_=replace(PTOKEN, tokens_per_weight=2**200),
        assets_=(*ASSETS, replace(ASSETS[0], group_key="debt")),
        prices_={"token;lend": Decimal(2), "token;debt": Decimal(2)},
    )
    with database(settings) as store:
        for job in JOBS.values():
            take_snapshot(job, source, store, NOON)
        yield falcon.testing.TestClient(create_app(settings, store, lambda: NOON, FirstHeads(store)))


def get(client: falcon.testing.TestClient, path: str, query: str = FLAGS) -> falcon.testing.Result:
    answer = client.simulate_get(path, query_string=query)
    assert answer.status_code == 200, (path, answer.text)
    return answer


def test_every_path_of_markets_and_positions_shows_them_by_their_ids(client: falcon.testing.TestClient) -> None:
    lists = ("", "/lend", "/borrow", "/borrow/collaterals", "/borrow/debts", "/merged", "/supply", "/tvl")
    for path in lists:
        get(client, f"/api/v1/markets{path}", "with_text=true")
    for path in ("lend", "borrow/collaterals", "borrow/debts", "merged"):
        shown = get(client, f"/api/v1/markets/{path}/lookup", f"{FLAGS}&asset_id={ID}").json["data"]["asset_info"]
        assert shown["asset"]["id"] == ID
        assert (shown["metadata"]["symbol"], shown["metadata"]["decimals_denom"]) == ("all", 0)
    for part in PATHS:
        named = {"index": "index=0", "asset_id": f"asset_id={ID}"}
        asked = [named[param.name] for param in part.query if param.name in named]
        get(client, f"/api/v1/{part.path.format(address=ADDRESS, index=0)}", "&".join([FLAGS, *asked]))


def test_paths_that_describe_no_assets_need_no_snapshot_of_prices(settings: Settings, store: Store) -> None:
    for name in ("markets", "loans", "positions", "routes"):
        take_snapshot(JOBS[name], HandMade(), store, NOON)
    client = falcon.testing.TestClient(create_app(settings, store, lambda: NOON, FirstHeads(store)))
    contract, denom = f"contract_address=0x{'d' * 40}", "source_denom=uusdt"
    swapped = {"source": "uusdt", "targets": ["uatom"]}
    assert get(client, "/api/v1/swap/routes", f"{contract}&{denom}").json["data"] == swapped
    assert swapped in get(client, "/api/v1/swap/routes/all", contract).json["data"]
    get(client, "/api/v1/markets/config", "with_text=true")
    get(client, "/api/v1/analytics/market/state", "")
    refused = client.simulate_get("/api/v1/markets/lend")
    assert (refused.status_code, refused.json["error"]["kind"]) == (503, "unavailable")
    assert "snapshot of prices" in refused.json["error"]["message"]


def test_their_amounts_are_in_denom_units_and_without_a_value(client: falcon.testing.TestClient) -> None:
    lent = get(client, f"{USER}/markets/lend/lookup", f"{FLAGS}&asset_id={ID}").json["data"]
    held = lent["receipt_amounts"]
    assert (held["held"], held["extra"]["text"]["held"]) == ("10", "10 all")
    assert held["extra"]["value"] is None or held["extra"]["value"]["held"] is None
    # In a wallet they are of the kind `unknown` (rule 6.2).
    balances = get(client, f"{USER}/wallet/balances").json["data"]["balances"]
    assert [(one["asset"]["id"], one["values"]["kind"]) for one in balances] == [
        (ID, "unknown"),
        ("token;lend", "known"),
    ]


def test_a_stake_in_an_undescribed_token_is_worth_nothing_to_the_health(client: falcon.testing.TestClient) -> None:
    health = get(client, f"{USER}/markets/borrow/accounts/1/health").json["data"]
    assert (health["result"], health["boost"]) == (health["base"], "0")


def test_a_debt_of_an_undescribed_asset_makes_health_unknown(client: falcon.testing.TestClient) -> None:
    health = get(client, f"{USER}/markets/borrow/accounts/0/health").json["data"]
    assert [health[part] for part in ("base", "boost", "result")] == [None] * 3


def test_a_number_of_more_than_64_bits_is_exact(client: falcon.testing.TestClient) -> None:
    body = get(client, "/api/v1/ptoken/params").text
    assert f'"tokens_per_weight":{2**200},' in body


def test_an_instant_that_cannot_be_stored_is_refused_by_name(store: Store) -> None:
    never = datetime(2200, 1, 1, tzinfo=UTC)
    first, *others = HandMade().arrangements_
    source = HandMade(arrangements_=[replace(first, expires_at=never), *others])
    with pytest.raises(OutOfRange, match="2200-01-01"):
        take_snapshot(JOBS["ptoken"], source, store, NOON)
