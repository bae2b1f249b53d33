"""Every example request on /docs is one to the service that shows it, and finds something."""

import re
from datetime import UTC, datetime
from html import unescape
from urllib.parse import urlsplit

import falcon.testing
import pytest

from analytics_service.app import create_app
from analytics_service.config import Settings
from analytics_service.store.connection import Store
from tests.doubles import FreshHeads, WatchedStore
from tests.integration.conftest import Simulated

HOST = "data.example:8443"


def client_of(settings: Settings, store: Store) -> falcon.testing.TestClient:
    now = datetime.fromtimestamp(Simulated.noon, UTC)
    return falcon.testing.TestClient(create_app(settings, store, lambda: now, FreshHeads(store)))


def examples(client: falcon.testing.TestClient, host: str = HOST) -> dict[str, str]:
    """The address in the example of each path."""
    page = client.simulate_get("/docs", headers={"Host": host}, protocol="https")
    assert page.status_code == 200
    sections = re.findall(r"<b>GET</b><code>(.*?)</code>.*?<pre>curl '(.*?)'</pre>", page.text)
    return {path: unescape(address) for path, address in sections}


def test_every_example_on_the_page_finds_something(simulated: Simulated) -> None:
    client = client_of(simulated.settings, simulated.store)
    found = examples(client)
    document = client.simulate_get("/api/v1/openapi.json").json
    assert [*found] == [path for tag in document["tags"] for path in of_tag(document, tag["name"])]
    for path, example in found.items():
        address = urlsplit(example)
        assert (address.scheme, address.netloc) == ("https", HOST)
        answer = client.simulate_get(address.path, query_string=address.query)
        assert answer.status_code == 200, (example, answer.text)
        if "history" in path and "users" not in path:
            assert values(answer.json["data"]), example


def of_tag(document: dict, tag: str) -> list[str]:  # type: ignore[type-arg]
    return [path for path, item in document["paths"].items() if tag in item["get"]["tags"]]


def values(data: dict) -> list[str]:  # type: ignore[type-arg]
    """The values of all points of a page of history."""
    series = data.get("series") or [data]
    return [point["v"] for one in series for point in one["points"] if point["v"] is not None]


def test_the_examples_are_those_of_the_document_while_the_store_is_empty_or_away(
    settings: Settings, store: Store
) -> None:
    """The page describes the API in every state of the store."""
    watched = WatchedStore(settings)
    client = client_of(settings, watched)
    empty = examples(client)
    assert empty["/api/v1/markets/lend/lookup"].endswith("?asset_id=native;uorb&with_text=true")
    watched.away = True
    assert examples(client_of(settings, watched)) == empty


@pytest.mark.parametrize("host", ["a'b", "<script>", "$(reboot)"])
def test_a_host_that_is_no_host_is_not_repeated(simulated: Simulated, host: str) -> None:
    client = client_of(simulated.settings, simulated.store)
    page = client.simulate_get("/docs", headers={"Host": host}).text
    assert host not in page
    assert "curl 'http://HOST/api/v1/assets" in page
