"""Paths below an address: slices of the user object, lookups, and the snapshots that each path depends on."""

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from typing import Any
from urllib.parse import urlencode

import falcon
import pytest
from falcon.testing import create_req

from analytics_service.errors import NoSnapshot
from analytics_service.http import params
from analytics_service.resources.current import Current, StatePath
from analytics_service.resources.snapshots import Asked, Schedule, SharedState
from analytics_service.resources.users import PATHS
from analytics_service.sources.simulated import EMPTY_ADDRESS, RICH_ADDRESS
from analytics_service.sources.simulated.universe import ID_OF
from analytics_service.state.view import SharedParts, View
from analytics_service.state.watcher import Heads
from tests.doubles import FirstHeads
from tests.integration.conftest import Simulated
from tests.integration.routes import Client, expect_error

Json = Any
FLAGS = ("with_text", "with_value", "with_percent")
PREFIX = "users/{address}/"


def get(protocol: Client, address: str, path: str, status: int = 200, **query: object) -> Json:
    answer = protocol.simulate_get(f"/api/v1/users/{address}/{path}", query_string=urlencode(query))
    assert answer.status_code == status, (path, query, answer.text)
    return answer.json


def fault(protocol: Client, path: str, status: int, address: str = RICH_ADDRESS, **query: object) -> tuple[str, str]:
    """The kind and the message of an error."""
    error = get(protocol, address, path, status, **query)["error"]
    return error["kind"], error["message"]


def slices(user: Json) -> Iterator[tuple[str, dict[str, object], Json]]:
    """Every path below an address with its parameters and its data, taken from the user object."""
    markets, staking, wallets = user["markets"], user["ptoken"]["staking"], user["wallets"]
    yield "user", {}, user
    yield "markets", {}, markets
    yield "markets/lend", {}, markets["lend"]
    for pool in markets["lend"]["asset_pools"]:
        yield "markets/lend/lookup", {"asset_id": id_of(pool)}, pool
    yield "markets/borrow", {}, markets["borrow"]
    for side in ("collaterals", "debts"):
        yield f"markets/borrow/sum/{side}", {}, markets["borrow"]["totals"][side]
    for account in markets["borrow"]["accounts"]:
        path = f"markets/borrow/accounts/{account['index']}"
        yield path, {}, account
        for part in ("collaterals", "debts", "health"):
            yield f"{path}/{part}", {}, account[part]
    yield from by_asset(markets)
    yield "ptoken/unlocks", {}, user["ptoken"]["unlocks"]
    yield "ptoken/staking", {}, staking
    yield "ptoken/staking/pools", {}, staking["pools"]
    for pool in staking["pools"]:
        yield "ptoken/staking/pools/lookup", {"index": pool["common"]["index"]}, pool
        yield "ptoken/staking/pools/lookup", {"duration": pool["common"]["duration"]}, pool
    yield "ptoken/staking/unstaking", {}, staking["unbonding"]
    yield "wallet/balances", {}, wallets
    for balance in wallets["balances"]:
        yield "wallet/balance", {"asset_id": balance["asset"]["id"]}, balance


def by_asset(markets: Json) -> Iterator[tuple[str, dict[str, object], Json]]:
    """The merged paths and lookups of collateral and debt, put together from accounts and lent assets."""
    accounts, lent = markets["borrow"]["accounts"], {id_of(pool): pool for pool in markets["lend"]["asset_pools"]}
    held = {side: [(account["index"], item) for account in accounts for item in account[side]] for side in SIDES}
    items = [item for side in SIDES for _, item in held[side]] + list(lent.values())
    infos = {id_of(item): item["asset_info"] for item in items}
    merged = []
    for asset_id in sorted(infos):
        of = {
            side: [
                {"index": index, **{name: item[name] for name in ("principal", "shares", "extra")}}
                for index, item in held[side]
                if id_of(item) == asset_id
            ]
            for side in SIDES
        }
        info = {"asset_info": infos[asset_id]}
        lend = {name: lent[asset_id][name] for name in LENT} if asset_id in lent else None
        merged.append({**info, "borrow_collateral": of["collaterals"], "borrow_debt": of["debts"], "lend": lend})
        named: dict[str, object] = {"asset_id": asset_id}
        yield "markets/merged/lookup", named, merged[-1]
        if of["collaterals"]:
            yield "markets/borrow/lookup/collateral", named, {**info, "accounts": of["collaterals"]}
        if of["debts"]:
            rate = next(item["market_rate"] for _, item in held["debts"] if id_of(item) == asset_id)
            yield "markets/borrow/lookup/debt", named, {**info, "market_rate": rate, "accounts": of["debts"]}
    yield "markets/merged", {}, merged


SIDES = ("collaterals", "debts")
LENT = ("receipt_amounts", "origin_equivalent")


def id_of(item: Json) -> str:
    asset_id: str = item["asset_info"]["asset"]["id"]
    return asset_id


def test_every_path_shows_its_slice_of_the_user_object_with_the_same_variants(protocol: Client) -> None:
    """Only unlocks have fractions, so only the paths that show them take with_percent."""
    flags = dict.fromkeys(FLAGS, "true")
    with_percent = {part.path.removeprefix(PREFIX) for part in PATHS if params.WITH_PERCENT in part.query}
    assert with_percent == {"user", "ptoken/unlocks"}
    seen = set()
    for address in (RICH_ADDRESS, EMPTY_ADDRESS):
        for path, named, expected in slices(get(protocol, address, "user", **flags)["data"]):
            chosen = {name: value for name, value in flags.items() if name != FLAGS[2] or path in with_percent}
            answer = get(protocol, address, path, **named, **chosen)
            assert answer["data"] == expected, (address, path, named)
            assert answer.get("count") == (len(expected) if isinstance(expected, list) else None)
            seen.add("/".join("{index}" if segment.isdecimal() else segment for segment in path.split("/")))
    assert {PREFIX + path for path in seen} == {part.path for part in PATHS}


def test_an_account_that_was_not_opened_is_not_found_and_a_malformed_index_is_refused(protocol: Client) -> None:
    """The rich address has accounts 0 to 3."""
    unopened, malformed = ("4", "4294967295"), ("4294967296", "9" * 30, "-1", "1.0", "%20", "first")
    for index in (*unopened, *malformed):
        status, expected = (404, "entity_not_found") if index in unopened else (400, "path_parameter_invalid")
        kind, message = fault(protocol, f"markets/borrow/accounts/{index}", status)
        assert (kind, "index" in message) == (expected, True)
    for part in ("collaterals", "debts", "health"):
        assert fault(protocol, f"markets/borrow/accounts/4/{part}", 404)[0] == "entity_not_found"
    assert fault(protocol, "markets/borrow/accounts/0", 404, EMPTY_ADDRESS)[0] == "entity_not_found"


def test_a_lookup_finds_only_what_the_address_has_there(protocol: Client) -> None:
    """An asset that the service knows but the address lacks is treated like one that nobody knows."""
    for path, held, lacking in (
        ("markets/lend/lookup", "HEL", "PTK"),
        ("markets/merged/lookup", "BTC", "stORB"),
        ("markets/borrow/lookup/collateral", "stHEL", "HUSD"),
        ("markets/borrow/lookup/debt", "USDT", "stHEL"),
        ("wallet/balance", "PTK", "stORB"),
    ):
        assert get(protocol, RICH_ADDRESS, path, asset_id=ID_OF[held])["data"] is not None
        for asset_id in (ID_OF[lacking], "native;nothing"):
            kind, message = fault(protocol, path, 404, asset_id=asset_id)
            assert (kind, asset_id in message) == ("entity_not_found", True)
    assert fault(protocol, path, 400, asset_id="BTC,HEL")[0] == "query_parameter_invalid"
    assert fault(protocol, path, 400)[0] == "query_parameter_missing"


def test_a_balance_of_an_asset_that_the_service_does_not_know_is_found(protocol: Client) -> None:
    balance = get(protocol, RICH_ADDRESS, "wallet/balance", asset_id="native;umystery")["data"]
    assert balance["values"] == {"kind": "unknown", "amount": "123456789"}


def test_a_staking_pool_is_looked_up_by_index_or_duration(protocol: Client) -> None:
    path = f"/api/v1/users/{RICH_ADDRESS}/ptoken/staking/pools/lookup"
    for query, status, kind, named in (
        ("", 400, "query_parameter_missing", "index or duration"),
        ("asset_id=1", 400, "query_parameter_unknown", "asset_id"),
        ("index=77", 404, "entity_not_found", "index: '77'"),
        ("duration=77", 404, "entity_not_found", "duration: '77'"),
    ):
        error = expect_error(
            protocol.simulate_get(path, query_string=query), status, kind, "user" if status == 404 else "client"
        )
        assert named in error


def test_a_path_is_made_from_the_datasets_that_it_names(simulated: Simulated) -> None:
    """With all others gone. Otherwise its answer would be kept when one of them has a newer snapshot."""
    heads = FirstHeads(simulated.store).shown().heads
    schedule = Schedule(dict, lambda: datetime.now(UTC))
    nothing: Any = None
    shared = SharedState(nothing, nothing, schedule, nothing, nothing)

    @cache
    def view_of(datasets: frozenset[str]) -> View:
        shown = Heads({dataset: head for dataset, head in heads.items() if dataset in datasets})
        return View(simulated.store, shown, SharedParts(simulated.store))

    def asked(part: StatePath, *, valued: bool) -> Asked:
        given = dict.fromkeys(FLAGS, "true") | {
            "with_value": str(valued).lower(),
            "asset_id": ID_OF["ETH"],
            "index": "0",
        }
        taken = {param.name: given[param.name] for param in part.query if param.name in given}
        req = create_req(query_string=urlencode(taken))
        req.context.media = falcon.MEDIA_JSON
        return Current(shared, part).ask(req, {"address": RICH_ADDRESS, "index": "0"})

    for part in PATHS:
        # Assets are described with the prices.
        own = frozenset({*part.datasets, "prices"})
        for needed, valued in {own: False, own.union(part.valued_by): True}.items():
            assert asked(part, valued=valued).render(view_of(needed)).body, part.path
    with pytest.raises(NoSnapshot, match="positions"):
        asked(part, valued=True).render(view_of(frozenset({"prices"})))
