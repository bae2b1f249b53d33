"""Sums, values and variants of the simulated protocol, recomputed from the raw tables with plain Decimals."""

import itertools
from collections import defaultdict
from collections.abc import Iterator
from decimal import ROUND_HALF_EVEN, Decimal, localcontext
from typing import Any
from urllib.parse import urlencode

import falcon.testing
import pytest

from analytics_service.app import create_app
from analytics_service.sources.simulated import RICH_ADDRESS
from tests.doubles import FirstHeads
from tests.integration.conftest import Simulated

NOON = f"toDateTime({Simulated.noon}, 'UTC')"


def rounded(value: Decimal) -> Decimal:
    with localcontext(prec=120):
        return value.quantize(Decimal("1e-18"), rounding=ROUND_HALF_EVEN)


@pytest.fixture(scope="module")
def client(simulated: Simulated) -> falcon.testing.TestClient:
    return falcon.testing.TestClient(create_app(simulated.settings, simulated.store, heads=FirstHeads(simulated.store)))


@pytest.fixture(scope="module")
def raw(simulated: Simulated) -> dict[str, Any]:
    return raw_at(simulated, Simulated.noon, "SELECT asset_id, value_exact AS price FROM price")


def raw_at(simulated: Simulated, second: int, quotes: str) -> dict[str, Any]:
    """Tables of a snapshot by asset id, and a price for every asset, including receipt tokens."""
    at = f"observed_at = toDateTime({second}, 'UTC')"
    assets = {row["id"]: row for row in simulated.rows("SELECT * FROM asset FINAL")}
    prices = simulated.rows(f"{quotes} WHERE {at}")
    tables = {
        table: {r["asset_id"]: r for r in simulated.rows(f"SELECT * FROM {table} FINAL WHERE {at}")}
        for table in ("market_lend", "market_collateral", "market_debt")
    }
    usd = {row["asset_id"]: row["price"] for row in prices}
    for asset_id, lend in tables["market_lend"].items():
        receipt = assets[asset_id]["receipt_asset"]
        with localcontext(prec=120):
            ratio = rounded(Decimal(lend["principal"]) / Decimal(lend["receipt_supply"]))
            usd[receipt] = rounded(usd[asset_id] * ratio)
    return {"assets": assets, "usd": usd, **tables}


def value(raw: dict[str, Any], asset_id: str, amount: int) -> Decimal:
    with localcontext(prec=120):
        return rounded(Decimal(amount).scaleb(-raw["assets"][asset_id]["decimals_denom"]) * raw["usd"][asset_id])


def is_receipt(raw: dict[str, Any], asset_id: str) -> bool:
    return bool(raw["assets"][asset_id]["kind"] == "protocol_receipt_token")


def get(client: falcon.testing.TestClient, path: str, **query: str) -> Any:
    answer = client.simulate_get(path, query_string=urlencode(query)).json
    assert answer["error"] is None, answer
    return answer["data"]


def test_supply_and_tvl(client: falcon.testing.TestClient, raw: dict[str, Any]) -> None:
    sums: dict[str, Decimal] = defaultdict(Decimal)
    with localcontext(prec=120):
        for asset_id, row in raw["market_collateral"].items():
            sums["receipt" if is_receipt(raw, asset_id) else "non_receipt"] += value(raw, asset_id, row["balance"])
        for asset_id, row in raw["market_debt"].items():
            sums["debt"] += value(raw, asset_id, row["balance"])
        for asset_id, row in raw["market_lend"].items():
            sums["lend"] += value(raw, asset_id, row["principal"])
        supply = get(client, "/api/v1/markets/supply")
        collateral = supply["borrow_collateral"]
        assert sums["receipt"] > 0
        assert Decimal(collateral["receipt"]["balance"]) == sums["receipt"]
        assert Decimal(collateral["non_receipt"]["balance"]) == sums["non_receipt"]
        assert Decimal(collateral["total"]["balance"]) == sums["receipt"] + sums["non_receipt"]
        assert Decimal(supply["borrow_debt"]["balance"]) == sums["debt"]
        assert Decimal(supply["lend"]["principal"]) == sums["lend"]
        assert Decimal(supply["tvl"]["tvl"]) == sums["non_receipt"] + sums["lend"]
        assert Decimal(supply["tvl"]["net_tvl"]) == sums["non_receipt"] + sums["lend"] - sums["debt"]
    assert get(client, "/api/v1/markets")["tvl"] == supply["tvl"]


def test_market_histories(client: falcon.testing.TestClient, simulated: Simulated) -> None:
    """Each point follows from the amounts and prices that were written with its snapshot."""
    path, instants = "/api/v1/markets/history", [Simulated.noon - 7200, Simulated.noon - 3600, Simulated.noon]
    query = {"start": str(instants[0]), "end": str(instants[-1]), "period": "h", "fill": "none"}
    total = {name: get(client, f"{path}/{name}", **query)["points"] for name in ("tvl", "net-tvl")}
    series = {
        name: {one["asset"]["id"]: one["points"] for one in get(client, f"{path}/{name}", **query)["series"]}
        for name in ("deposits", "collateral", "debt", "utilization")
    }
    for place, instant in enumerate(instants):
        raw = raw_at(simulated, instant, "SELECT asset_id, price FROM market_price FINAL")
        values = {
            name: {asset_id: value(raw, asset_id, row[column]) for asset_id, row in raw[table].items()}
            for name, table, column in (
                ("deposits", "market_lend", "principal"),
                ("collateral", "market_collateral", "balance"),
                ("debt", "market_debt", "balance"),
            )
        }
        with localcontext(prec=120):
            locked = [
                *values["deposits"].values(),
                *(usd for one, usd in values["collateral"].items() if not is_receipt(raw, one)),
            ]
            values["utilization"] = {
                asset_id: rounded(Decimal(raw["market_debt"][asset_id]["balance"]) / Decimal(lend["principal"]))
                for asset_id, lend in raw["market_lend"].items()
            }
            expected = {"tvl": sum(locked), "net-tvl": sum(locked) - sum(values["debt"].values())}
        assert {name: points[place]["t"] for name, points in total.items()} == dict.fromkeys(total, instant)
        assert {name: Decimal(points[place]["v"]) for name, points in total.items()} == expected
        for name, found in series.items():
            assert {asset_id: Decimal(points[place]["v"]) for asset_id, points in found.items()} == values[name]
    supply = get(client, "/api/v1/markets/supply")["tvl"]
    assert [supply["tvl"], supply["net_tvl"]] == [total["tvl"][-1]["v"], total["net-tvl"][-1]["v"]]


def test_values_of_every_merged_market(client: falcon.testing.TestClient, raw: dict[str, Any]) -> None:
    merged = get(client, "/api/v1/markets/merged", with_value="true")
    expected = {*raw["market_lend"], *raw["market_collateral"], *raw["market_debt"]}
    assert {market["asset_info"]["asset"]["id"] for market in merged} == expected
    columns = {
        "lend": ("market_lend", {"principal": "principal"}),
        "borrow_collateral": ("market_collateral", {"shares": "shares", "balance": "balance"}),
        "borrow_debt": ("market_debt", {"shares": "shares", "balance": "balance"}),
    }
    for market, (part, (table, names)) in itertools.product(merged, columns.items()):
        asset_id = market["asset_info"]["asset"]["id"]
        row = raw[table].get(asset_id)
        assert (market[part] is None) == (row is None)
        for name, column in names.items() if row else ():
            state = market[part]["state"]
            assert state[name] == str(row[column])
            assert Decimal(state["extra"]["value"][name]) == value(raw, asset_id, row[column])
            assert Decimal(state["extra"]["value"]["price"]) == raw["usd"][asset_id]


def test_market_shares_are_the_sums_over_accounts(simulated: Simulated, raw: dict[str, Any]) -> None:
    held = simulated.rows(
        f"SELECT kind, asset_id, sum(amount) AS shares FROM position FINAL "
        f"WHERE observed_at <= {NOON} AND NOT closed AND kind IN ('collateral', 'debt') GROUP BY kind, asset_id"
    )
    shares = {(row["kind"], row["asset_id"]): row["shares"] for row in held}
    kinds = ("collateral", "debt")
    markets = {(kind, asset): row["shares"] for kind in kinds for asset, row in raw[f"market_{kind}"].items()}
    assert shares == {key: amount for key, amount in markets.items() if amount}


def test_loans_are_the_sums_of_events(client: falcon.testing.TestClient, simulated: Simulated) -> None:
    sums = simulated.rows("SELECT kind, asset_id, sum(usd) AS usd FROM event FINAL GROUP BY kind, asset_id")
    borrowed = {row["asset_id"]: row["usd"] for row in sums if row["kind"] == "borrow"}
    state = get(client, "/api/v1/analytics/market/state")
    breakdown = {one["asset"]["id"]: Decimal(one["value"]) for one in state["loans_originated"]["breakdown"]}
    assert {asset_id: usd for asset_id, usd in breakdown.items() if usd} == borrowed
    assert Decimal(state["loans_originated"]["total_value"]) == sum(borrowed.values())
    flash = sum(row["usd"] for row in sums if row["kind"] == "flash_loan")
    assert Decimal(state["flash_loan_volume_total"]) == flash
    noon = {"start": str(Simulated.noon), "end": str(Simulated.noon), "period": "h"}
    history = get(client, "/api/v1/analytics/market/history/loans-originated", **noon)
    assert history["points"] == [{"t": Simulated.noon, "v": state["loans_originated"]["total_value"]}]


def test_liquidations_are_the_sums_of_the_debts_that_they_repaid(
    client: falcon.testing.TestClient, simulated: Simulated
) -> None:
    debts = simulated.rows(
        "SELECT asset_id, sum(usd) AS usd FROM account_event FINAL "
        "WHERE action = 'liquidate' AND leg = 'debt' GROUP BY asset_id"
    )
    repaid = {row["asset_id"]: row["usd"] for row in debts}
    assert repaid
    noon = {"start": str(Simulated.noon), "end": str(Simulated.noon), "period": "h"}
    path = "/api/v1/analytics/market/history/liquidations"
    series = get(client, f"{path}/by-asset", **noon)["series"]
    shown = {one["asset"]["id"]: Decimal(one["points"][0]["v"]) for one in series}
    assert {asset_id: usd for asset_id, usd in shown.items() if usd} == repaid
    (point,) = get(client, path, **noon)["points"]
    assert Decimal(point["v"]) == sum(repaid.values())


def test_the_claims_of_a_rich_address_are_its_shares_of_the_markets(
    client: falcon.testing.TestClient, raw: dict[str, Any]
) -> None:
    path = f"/api/v1/users/{RICH_ADDRESS}/user"
    user = get(client, path, with_value="true")
    borrow = user["markets"]["borrow"]
    assert len(borrow["accounts"]) > 1
    for side, table in (("collaterals", "market_collateral"), ("debts", "market_debt")):
        summed: dict[str, int] = defaultdict(int)
        for item in (item for account in borrow["accounts"] for item in account[side]):
            asset_id = item["asset_info"]["asset"]["id"]
            row = raw[table][asset_id]
            assert int(item["principal"]) == int(item["shares"]) * row["balance"] // row["shares"]
            assert Decimal(item["extra"]["value"]["principal"]) == value(raw, asset_id, int(item["principal"]))
            summed[asset_id] += int(item["shares"])
        totals = {one["asset_info"]["asset"]["id"]: int(one["shares"]) for one in borrow["totals"][side]}
        assert totals == summed
    known = [balance for balance in user["wallets"]["balances"] if balance["values"]["kind"] == "known"]
    with localcontext(prec=120):
        worth = sum(value(raw, one["asset"]["id"], int(one["values"]["amount"])) for one in known)
        assert Decimal(user["wallets"]["total_value"]) == worth


def test_net_rates_of_a_rich_address_are_weighted_by_value(
    client: falcon.testing.TestClient, raw: dict[str, Any]
) -> None:
    markets = get(client, f"/api/v1/users/{RICH_ADDRESS}/user")["markets"]

    def net_rate(parts: list[tuple[dict[str, Any], str]], table: str) -> dict[str, Decimal]:
        ids = [item["asset_info"]["asset"]["id"] for item, _ in parts]
        with localcontext(prec=120):
            weights = [value(raw, asset_id, int(amount)) for asset_id, (_, amount) in zip(ids, parts, strict=True)]
            aprs = [raw[table][asset_id]["apr"] for asset_id in ids]
            apys = [compounded(apr) for apr in aprs]
            return {
                name: rounded(sum(weight * rate for weight, rate in zip(weights, rates, strict=True)) / sum(weights))
                for name, rates in (("apr", aprs), ("apy", apys))
            }

    def shown(rate: dict[str, Any]) -> dict[str, Decimal]:
        return {name: Decimal(rate[name]) for name in ("apr", "apy")}

    lends = [(pool, pool["origin_equivalent"]["total"]) for pool in markets["lend"]["asset_pools"]]
    assert len(lends) > 1
    assert shown(markets["lend"]["net_rate"]) == net_rate(lends, "market_lend")
    debts = [(debt, debt["principal"]) for debt in markets["borrow"]["totals"]["debts"]]
    assert len(debts) > 1
    assert shown(markets["borrow"]["totals"]["debts_net_rate"]) == net_rate(debts, "market_debt")


def compounded(apr: Decimal) -> Decimal:
    """The APY: e to the power of n * ln(1 + apr/n) less 1, for the n seconds of 365 days."""
    with localcontext(prec=120):
        return rounded((31_536_000 * (1 + apr / 31_536_000).ln()).exp() - 1)


FLAGS = ("with_text", "with_value", "with_percent")
# Paths whose objects have variants, with the flags that each path takes.
VARIED = {
    "/api/v1/assets/prices": FLAGS[:1],
    "/api/v1/markets": FLAGS[:2],
    "/api/v1/analytics/ptoken/unlocks-distribution": FLAGS,
    f"/api/v1/users/{RICH_ADDRESS}/user": FLAGS,
}


def extras(data: Any) -> Iterator[dict[str, Any]]:
    """Every `extra` in an answer, except those inside variants."""
    if isinstance(data, list):
        for item in data:
            yield from extras(item)
    elif isinstance(data, dict):
        for name, item in data.items():
            if name == "extra":
                yield item
            else:
                yield from extras(item)


@pytest.mark.parametrize("path", VARIED)
def test_variants_are_null_unless_requested_in_any_combination(client: falcon.testing.TestClient, path: str) -> None:
    seen = set()
    for values in itertools.product((False, True), repeat=len(VARIED[path])):
        requested = dict(zip(VARIED[path], values, strict=True))
        data = get(client, path, **{flag: "true" if on else "false" for flag, on in requested.items()})
        text = requested.get("with_text", False)
        for extra in extras(data):
            seen |= set(extra)
            assert (extra["text"] is not None) == text
            for name, flag in (("value", "with_value"), ("percent", "with_percent")):
                if name not in extra:
                    continue
                assert (extra[name] is not None) == requested.get(flag, False), (name, requested)
                if extra[name] is not None:
                    assert (extra[name]["extra"]["text"] is not None) == text
    flags = {"with_text": "text", "with_value": "value", "with_percent": "percent"}
    assert seen == {flags[flag] for flag in VARIED[path]}
