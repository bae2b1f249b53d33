"""What paths of current state show: prices, assets, and markets in two shapes (rules 5.1 to 5.3)."""

from typing import Any

import pytest

from tests.integration.routes import Client, get

of_each_market = pytest.mark.parametrize("kind", ["lend", "borrow/collaterals", "borrow/debts"])


def data(client: Client, path: str, query: str = "") -> Any:
    return get(client, f"/api/v1/{path}", query).json["data"]


def test_the_price_list(two_assets: Client) -> None:
    prices = get(two_assets, "/api/v1/assets/prices", "with_text=true").json
    assert prices["count"] == 2
    assert prices["data"][0] == {
        "asset": {"id": "token;a", "group": "token", "group_key": "a"},
        "classification": {"kind": "regular", "protocol_receipt_asset": None},
        "metadata": {
            "decimals_denom": 6,
            "decimals_display": 2,
            "name": "a",
            "symbol": "a",
            "symbol_denom": "a",
        },
        "price": {
            "price": "1572.5",
            "last_updated_at": "2025-03-01T12:00:00Z",
            "extra": {"text": {"price": "$1,572.50", "last_updated_at": "2025-03-01 12:00:00 UTC"}},
        },
    }
    bare = data(two_assets, "assets/prices")
    assert [asset["price"]["extra"] for asset in bare] == [{"text": None}] * 2
    assert bare[1]["price"]["price"] == "0"


def test_the_asset_list_is_the_price_list_without_prices(two_assets: Client) -> None:
    expected = [
        {key: asset[key] for key in ("asset", "classification", "metadata")}
        for asset in data(two_assets, "assets/prices")
    ]
    assets = get(two_assets, "/api/v1/assets").json
    assert (assets["data"], assets["count"]) == (expected, 2)


@of_each_market
def test_lists_of_markets_have_two_shapes_and_are_older_by_default(protocol: Client, kind: str) -> None:
    path = f"/api/v1/markets/{kind}"
    default, older, newer = (get(protocol, path, query).json for query in ("", "shape=older", "shape=newer"))
    overview = data(protocol, "markets")
    for part in kind.split("/"):
        overview = overview[part]
    assert default == older
    assert default["count"] == len(default["data"]) == len(newer["data"]["contents"])
    assert newer["data"] == overview
    assert {*newer["data"]} == {"supply", "contents"}
    assert "count" not in newer
    assert "shape" in get(protocol, path, "shape=new").json["error"]["message"]


def test_the_older_total_value_locked_is_that_of_the_supply(protocol: Client) -> None:
    supply, tvl = (data(protocol, f"markets/{path}", "with_text=true") for path in ("supply", "tvl"))
    assert tvl["collateral_value"] == supply["borrow_collateral"]["non_receipt"]["balance"]
    assert tvl["lend_value"] == supply["lend"]["principal"]
    assert tvl["total_value"] == supply["tvl"]["tvl"]
    assert tvl["extra"]["text"]["total_value"] == supply["tvl"]["extra"]["text"]["tvl"]
