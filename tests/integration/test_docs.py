"""The examples of /docs can be requested. Where the service is, its script adds: see the tests of the page."""

import csv
import re
from dataclasses import replace
from decimal import Decimal
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import falcon.testing
import pytest
import urllib3

from analytics_service.http.api_keys import add_key
from tests.integration.conftest import Simulated
from tests.integration.routes import client_of
from tests.integration.servers import listening

HOST = "http://HOST"


def examples(client: falcon.testing.TestClient) -> dict[str, str]:
    """The address in the example of each path."""
    page = client.simulate_get("/docs")
    assert page.status_code == 200
    sections = re.findall(r"<b>GET</b><code>(.*?)</code>.*?<pre>curl '(.*?)'</pre>", page.text)
    return {path: unescape(address) for path, address in sections}


def test_every_example_on_the_page_can_be_requested(simulated: Simulated) -> None:
    """The address of the examples has no position and no routes, so lookups in them find nothing. Paths without
    parameters are tested with all routes."""
    client = client_of(simulated.settings, simulated.store)
    found = examples(client)
    document = client.simulate_get("/api/v1/openapi.json").json
    assert [*found] == [path for tag in document["tags"] for path in of_tag(document, tag["name"])]
    for path, example in found.items():
        address = urlsplit(example)
        assert f"{address.scheme}://{address.netloc}" == HOST
        if not address.query:
            continue
        answer = client.simulate_get(address.path, query_string=address.query)
        names_nothing = path.startswith(("/api/v1/users/", "/api/v1/swap/"))
        assert answer.status_code in (200, 404 if names_nothing else 200), (example, answer.text)
        if "history" in path and "users" not in path:
            assert values(answer.json["data"]), example


def of_tag(document: dict, tag: str) -> list[str]:  # type: ignore[type-arg]
    return [path for path, item in document["paths"].items() if tag in item["get"]["tags"]]


def values(data: dict) -> list[str]:  # type: ignore[type-arg]
    """The values of all points of a page of history."""
    series = data.get("series") or [data]
    return [point["v"] for one in series for point in one["points"] if point["v"] is not None]


def test_the_page_is_the_same_for_all_hosts_and_schemes(simulated: Simulated) -> None:
    """Any cache may pass it on."""
    client = client_of(simulated.settings, simulated.store)
    pages = [client.simulate_get("/docs", headers={"Host": host}, protocol="https") for host in ("a.example", "<b>")]
    assert pages[0].text == pages[1].text == client.simulate_get("/docs").text


def tool_lines(address: str) -> list[str]:
    """What the page shows for Polars, pandas, Grafana and spreadsheets."""
    page = urllib3.request("GET", f"{address}/docs").data.decode()
    section = re.search(r"<h2 id=tables>(.*?)</section>", page, re.DOTALL)
    assert section
    lines = re.findall(r"<pre>(.*?)</pre>", section[1], re.DOTALL)
    return [unescape(line).replace(HOST, address) for line in lines]


def read_by(lines: str) -> Any:
    """The table that lines of Python read."""
    names: dict[str, Any] = {}
    exec(lines, names)  # noqa: S102 - our own page
    return names["prices"]


def test_the_lines_for_other_tools_read_a_history_of_this_service(simulated: Simulated) -> None:
    pytest.importorskip("pandas")
    with listening(client_of(simulated.settings, simulated.store).app) as address:
        of_polars, of_pandas, of_grafana, of_sheets = tool_lines(address)
        by_polars, by_pandas = read_by(of_polars), read_by(of_pandas)
        end = simulated.noon
        chart = of_grafana.replace("${__from:date:seconds}", str(end - 86_400)).replace("$__timezone", "utc")
        chart = chart.replace("${__to:date:seconds}", str(end))
        (sheet,) = re.fullmatch(r'=IMPORTDATA\("(.*)"\)', of_sheets).groups()  # type: ignore[union-attr]
        rows = {
            url: list(csv.DictReader(urllib3.request("GET", url).data.decode().splitlines())) for url in (chart, sheet)
        }
    assert [*by_polars.columns] == ["t", "time", "asset_id", "symbol", "v"]
    assert by_polars["symbol"].to_list() == by_pandas["symbol"].to_list() == [row["symbol"] for row in rows[sheet]]
    assert isinstance(by_pandas["v"].dropna().iloc[0], Decimal)
    for found in rows.values():
        assert len({row["v"] for row in found}) > 10
    assert max(len(Decimal(row["v"]).as_tuple().digits) for row in rows[sheet] if row["v"]) == 6
    assert {"time", "symbol", "v"} <= rows[chart][0].keys()


def test_where_keys_are_asked_for_the_lines_of_python_send_one(simulated: Simulated, tmp_path: Path) -> None:
    file = tmp_path / "keys.txt"
    key = add_key(file, "researcher")
    settings = replace(simulated.settings, api_keys_file=file)
    with listening(client_of(settings, simulated.store).app) as address:
        of_polars, *_ = tool_lines(address)
        assert "native;uorb" in read_by(of_polars.replace("KEY", key))["asset_id"].to_list()
