"""Requests that need an API key or are limited: who gets in, and what answers say about it (rules 3.5 and 3.6)."""

from collections.abc import Sequence
from pathlib import Path

import falcon
import falcon.testing
import pytest
from falcon.inspect import inspect_routes

from analytics_service.app import create_app
from analytics_service.config.settings import Settings
from analytics_service.config.values import Networks, Rate, networks
from analytics_service.http import errors
from analytics_service.http.answer import Answer, Validators, send
from analytics_service.http.api_keys import ApiKeys, add_key
from analytics_service.http.coding import IDENTITY
from analytics_service.http.guard import Guard
from analytics_service.http.measuring import OWN_REQUEST
from analytics_service.http.middleware import Conventions, CrossOrigin
from analytics_service.http.rate_limit import Counts, RateLimit
from analytics_service.http.requests import client_of
from analytics_service.http.resource import Resource

PATH = "/api/v1/assets"
Result = falcon.testing.Result


class Assets(Resource):
    """A path that any cache may keep."""

    def respond(self, req: falcon.Request, resp: falcon.Response, **path: str) -> None:
        send(req, resp, Answer(Validators("abc"), IDENTITY, b"{}"), "public, max-age=7")


def trusted(proxies: str | None) -> Networks:
    return networks(proxies) if proxies else Networks()


class Service:
    """The path behind a guard; the clock stands still unless a test sets it."""

    def __init__(self, *, keys: Path | None = None, rate: Rate | None = None, proxies: str | None = None) -> None:
        self.second = 0
        api_keys = ApiKeys(keys) if keys else None
        limit = RateLimit(rate, Counts(), lambda: self.second * 10**9) if rate else None
        guard = Guard(api_keys, limit, trusted(proxies))
        app = falcon.App(middleware=[CrossOrigin("*"), guard, Conventions()])
        errors.install(app)
        for path in (PATH, "/api/v1/openapi.json", "/healthz"):
            app.add_route(path, Assets())
        self.client = falcon.testing.TestClient(app)

    def get(self, path: str = PATH, method: str = "GET", client: str = "192.0.2.1", **headers: str) -> Result:
        return self.client.simulate_request(
            method,
            path,
            remote_addr=client,
            headers={name.replace("_", "-"): value for name, value in headers.items()},
        )

    def statuses(self, count: int, **request: str) -> list[int]:
        return [self.get(**request).status_code for _ in range(count)]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "keys.txt"


@pytest.fixture
def key(file: Path) -> str:
    return add_key(file, "alice")


@pytest.fixture
def asking(file: Path, key: str) -> Service:
    return Service(keys=file)


@pytest.mark.parametrize("scheme", ["Bearer", "BEARER  "])
def test_a_request_with_a_key_is_answered_for_its_owner_only(asking: Service, key: str, scheme: str) -> None:
    got = asking.get(Authorization=f"{scheme} {key}")
    assert (got.status_code, got.content) == (200, b"{}")
    assert got.headers["cache-control"] == "private, max-age=7"
    assert got.headers["vary"] == "Accept-Encoding, Authorization"
    unchanged = asking.get(Authorization=f"{scheme} {key}", If_None_Match='"abc"')
    assert unchanged.status_code == 304
    assert unchanged.headers["cache-control"] == "private, max-age=7"
    assert unchanged.headers["vary"] == "Accept-Encoding, Authorization"


REALM = 'Bearer realm="analytics-service"'
MALFORMED = f'{REALM}, error="invalid_request"', "The Authorization header is malformed"
REQUIRED = REALM, "An API key is required"
INVALID = f'{REALM}, error="invalid_token"', "The API key is not valid"


@pytest.mark.parametrize(
    ("method", "path", "headers", "told"),
    [
        ("GET", PATH, {}, REQUIRED),
        ("GET", PATH, {"X-API-Key": "abc"}, REQUIRED),
        ("POST", PATH, {}, REQUIRED),
        ("GET", "/api/v1", {}, REQUIRED),
        ("GET", "/api/v1/nothing//here", {}, REQUIRED),
        ("GET", PATH, {"Authorization": "Bearer wrong"}, INVALID),
        ("GET", PATH, {"Authorization": "Bearer"}, MALFORMED),
        ("GET", PATH, {"Authorization": "Basic abc"}, MALFORMED),
        ("GET", PATH, {"Authorization": "Bearer a b"}, MALFORMED),
    ],
)
def test_other_requests_get_a_401_whatever_they_ask_for(
    asking: Service, method: str, path: str, headers: dict[str, str], told: tuple[str, str]
) -> None:
    challenge, message = told
    got = asking.get(path, method, **headers)
    assert got.status_code == 401
    assert got.json == {
        "data": None,
        "error": {
            "kind": "unauthorized",
            "scope": "client",
            "message": f"{message}: send a header Authorization: Bearer KEY.",
        },
        "status": 401,
        "status_text": "Unauthorized",
    }
    assert got.headers["www-authenticate"] == challenge
    assert got.headers["cache-control"] == "no-store"
    assert got.headers["vary"] == "Authorization"
    assert got.headers["access-control-allow-origin"] == "*"


def test_every_path_of_the_service_below_api_v1_needs_a_key_and_its_description_says_so(file: Path, key: str) -> None:
    settings = Settings(api_keys_file=file, rate_limit=Rate(1000, 60), clickhouse_url="http://127.0.0.1:1")
    app = create_app(settings)
    client = falcon.testing.TestClient(app)
    paths = [route.path for route in inspect_routes(app)]
    without = {path: client.simulate_get(path).status_code for path in paths}
    below = {path for path in paths if path.startswith("/api/v1/")} - {"/api/v1/openapi.json"}
    assert {path for path, status in without.items() if status == 401} == below
    headers = {"Authorization": f"Bearer {key}"}
    # There is no store.
    assert client.simulate_get("/api/v1/markets", headers=headers).status_code == 503
    described = client.simulate_get("/api/v1/openapi.json").json
    operations = {path: item["get"] for path, item in described["paths"].items()}
    assert {path for path, operation in operations.items() if operation.get("security") == [{"ApiKey": []}]} == below
    assert {path for path, operation in operations.items() if {"401", "429"} <= {*operation["responses"]}} == below


def test_a_preflight_request_needs_no_key_and_allows_one_to_be_sent(asking: Service) -> None:
    got = asking.get(
        method="OPTIONS",
        Origin="https://a.example",
        Access_Control_Request_Method="GET",
        Access_Control_Request_Headers="authorization",
    )
    assert got.status_code == 200
    assert got.headers["access-control-allow-headers"] == "authorization"


def test_a_request_that_the_service_sends_to_itself_needs_no_key(asking: Service) -> None:
    got = asking.client.simulate_get(PATH, extras={OWN_REQUEST: True})
    assert got.status_code == 200


def test_a_client_that_asks_too_often_gets_a_429_until_its_window_has_moved_on() -> None:
    service = Service(rate=Rate(3, 60))
    allowed = [service.get() for _ in range(3)]
    assert [got.status_code for got in allowed] == [200, 200, 200]
    assert {got.headers["ratelimit-policy"] for got in allowed} == {'"default";q=3;w=60'}
    # The window has just begun. In the next one a third of what was counted is left after 20, 40 and 60 seconds.
    assert [got.headers["ratelimit"] for got in allowed] == [
        '"default";r=2;t=120',
        '"default";r=1;t=90',
        '"default";r=0;t=80',
    ]
    refused = service.get()
    assert refused.status_code == 429
    assert refused.json["error"] == {
        "kind": "rate_limited",
        "scope": "client",
        "message": "At most 3 requests in 60 s are allowed; try again in 80 s.",
    }
    assert refused.headers["retry-after"] == "80"
    assert refused.headers["ratelimit"] == '"default";r=0;t=80'
    assert refused.headers["ratelimit-policy"] == '"default";q=3;w=60'
    assert (refused.headers["cache-control"], refused.headers["access-control-allow-origin"]) == ("no-store", "*")
    assert service.get(client="192.0.2.2").status_code == 200
    service.second = 79
    assert service.get().status_code == 429
    service.second = 80
    assert service.statuses(2) == [200, 429]


def test_all_answers_count_except_those_to_probes_and_preflights() -> None:
    service = Service(rate=Rate(3, 60))
    for _ in range(4):
        assert "ratelimit" not in service.get("/healthz").headers
        assert "ratelimit" not in service.get(method="OPTIONS", Access_Control_Request_Method="GET").headers
    first, second = service.get("/api/v1/nothing"), service.get(If_None_Match='"abc"')
    assert (first.status_code, first.headers["ratelimit"]) == (404, '"default";r=2;t=120')
    assert (second.status_code, second.headers["ratelimit"]) == (304, '"default";r=1;t=90')
    # Files of the web page are among the largest answers.
    assert service.get("/static/version/main.js").headers["ratelimit"] == '"default";r=0;t=80'
    assert service.get("/static/version/main.js").status_code == 429


def test_a_key_is_one_client_at_all_addresses_and_wrong_keys_count_for_the_address(file: Path, key: str) -> None:
    service = Service(keys=file, rate=Rate(2, 60))
    addresses: Sequence[str] = ("192.0.2.1", "192.0.2.2", "192.0.2.3")
    with_key = [service.get(client=address, Authorization=f"Bearer {key}").status_code for address in addresses]
    assert with_key == [200, 200, 429]
    assert service.statuses(3, Authorization="Bearer wrong") == [401, 401, 429]
    assert service.statuses(1, client="192.0.2.2") == [401]


@pytest.mark.parametrize(
    ("proxies", "peer", "forwarded", "client"),
    [
        # Without trusted proxies the header is what the client claims.
        (None, "192.0.2.1", "198.51.100.7", "192.0.2.1"),
        ("10.0.0.0/8", "192.0.2.1", "198.51.100.7", "192.0.2.1"),
        ("10.0.0.0/8", "10.0.0.1", "198.51.100.7", "198.51.100.7"),
        ("10.0.0.0/8,2001:db8:1::1", "2001:db8:1::1", "203.0.113.9, 198.51.100.7 ,10.9.9.9", "198.51.100.7"),
        ("10.0.0.0/8", "10.0.0.1", None, "10.0.0.1"),
        ("10.0.0.0/8", "10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3"),
        ("10.0.0.0/8", "10.0.0.1", "198.51.100.7, unknown", "10.0.0.1"),
        ("10.0.0.0/8", "10.0.0.1", "198.51.100.7:4711", "198.51.100.7"),
        ("10.0.0.0/8", "10.0.0.1", "[2001:db8:2:3:4::5]:80", "2001:db8:2:3::/64"),
        (None, "2001:db8:2:3:ffff::5", None, "2001:db8:2:3::/64"),
        # A socket for both families.
        ("10.0.0.0/8", "::ffff:10.0.0.1", "198.51.100.7", "198.51.100.7"),
        # A Unix socket, to which only proxies connect.
        (None, "", None, ""),
        (None, "", "203.0.113.9, 198.51.100.7", "198.51.100.7"),
        ("198.51.100.0/24", "", "203.0.113.9, 198.51.100.7", "203.0.113.9"),
    ],
)
def test_the_client_is_the_last_address_that_is_no_trusted_proxy(
    proxies: str | None, peer: str, forwarded: str | None, client: str
) -> None:
    headers = {"X-Forwarded-For": forwarded} if forwarded else {}
    request = falcon.testing.create_req(headers=headers, remote_addr=peer)
    request.env["REMOTE_ADDR"] = peer
    assert client_of(request, trusted(proxies)) == client
