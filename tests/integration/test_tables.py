"""Lists of state as CSV: their rows are the items of the JSON, their columns those of the declaration."""

import csv
import io
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.routes import NOON, ROUTES, STATES, USER, Client, expect_error, get

# The member that is the list, where the answer is not.
MEMBERS = {
    "/api/v1/analytics/market/risk/ladder": "steps",
    "/api/v1/analytics/ptoken/unlocks-distribution": "groups",
    f"{USER}/markets/lend": "asset_pools",
    f"{USER}/markets/borrow": "accounts",
    f"{USER}/ptoken/unlocks": "arrangements",
    f"{USER}/ptoken/staking": "pools",
    f"{USER}/ptoken/staking/unstaking": "contents",
    f"{USER}/wallet/balances": "balances",
}


def cells(item: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """The cells of an item by the dotted names of their columns."""
    if isinstance(item, dict):
        for key, value in item.items():
            yield from cells(value, f"{name}.{key}".removeprefix("."))
    elif item is not None:
        yield name, item if isinstance(item, str) else json.dumps(item, separators=(",", ":"), ensure_ascii=False)


def test_a_row_has_the_cells_of_its_item(protocol: Client) -> None:
    listed = 0
    for path in STATES:
        asked = [f"{ROUTES[path].query}&with_value=true&with_text=true".strip("&"), ROUTES[path].query]
        answers = ((query, get(protocol, path, query)) for query in asked)
        query, stated = next((query, answer) for query, answer in answers if answer.status_code == 200)
        items = stated.json["data"][MEMBERS[path]] if path in MEMBERS else stated.json["data"]
        if not isinstance(items, list):
            continue
        listed += 1
        answer = get(protocol, path, query, Accept="text/csv")
        assert (answer.status_code, answer.headers["content-type"]) == (200, "text/csv; charset=utf-8"), path
        assert answer.headers["content-disposition"].startswith('attachment; filename="'), path
        assert answer.headers["etag"] != stated.headers["etag"]
        assert answer.text.endswith("\r\n")
        rows = list(csv.DictReader(io.StringIO(answer.text, newline=""), strict=True))
        filled = [{name: cell for name, cell in row.items() if cell} for row in rows]
        assert filled == [{name: cell for name, cell in cells(item) if cell} for item in items], path
    assert listed > len(MEMBERS) + 10
    by_header, by_query = (
        get(protocol, "/api/v1/assets", Accept="text/csv"),
        get(protocol, "/api/v1/assets", "format=csv"),
    )
    assert by_query.text == by_header.text


def test_a_list_without_items_has_the_same_header(protocol: Client) -> None:
    nobody = f"/api/v1/users/0x{'e' * 40}"
    for path in (f"{USER}/tx-history", f"{USER}/markets/merged", f"{USER}/wallet/balances", f"{USER}/ptoken/unlocks"):
        query = "format=csv&with_text=true"
        header, *rows = protocol.simulate_get(path.replace(USER, nobody), query_string=query).text.splitlines()
        assert not rows
        assert header == get(protocol, path, query).text.splitlines()[0]


def test_a_column_is_there_for_each_change(protocol: Client) -> None:
    query = "changes=1h,24h&with_text=true&format=csv"
    header = get(protocol, "/api/v1/assets/prices", query).text.splitlines()[0].split(",")
    spans = [name.rpartition(".")[2] for name in header if "changes" in name]
    assert spans == ["1h", "24h"] * 2
    assert "price.extra.text.changes.24h" in header
    assert "changes" not in get(protocol, "/api/v1/assets/prices", "format=csv").text


def test_all_items_are_in_a_file_unless_a_limit_is_given(protocol: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in ("/api/v1/analytics/market/events", "/api/v1/analytics/market/borrowers"):
        count = get(protocol, path, "").json["count"]
        assert count > 20
        whole, part = get(protocol, path, "format=csv"), get(protocol, path, "format=csv&limit=3")
        assert (len(whole.text.splitlines()), len(part.text.splitlines())) == (count + 1, 4)
        assert ("link" in whole.headers, "format=csv" in part.headers["link"]) == (False, True)
        expect_error(get(protocol, path, "format=csv&limit=1001"), 400, "query_parameter_invalid", "client")
    monkeypatch.setattr("analytics_service.resources.current.MAX_POINTS", 30)
    for path in ("/api/v1/analytics/market/events", "/api/v1/analytics/market/borrowers"):
        message = expect_error(get(protocol, path, f"format=csv&at={NOON}"), 400, "query_parameter_invalid", "client")
        assert "at most 30 rows" in message


def test_what_is_no_list_is_no_file(protocol: Client) -> None:
    for path in ("/api/v1/markets", "/api/v1/markets/borrow", f"{USER}/user"):
        expect_error(get(protocol, path, Accept="text/csv"), 406, "content_type_unsupported", "client")
    message = expect_error(get(protocol, "/api/v1/assets", "format=xml"), 400, "query_parameter_invalid", "client")
    assert "json, csv" in message
