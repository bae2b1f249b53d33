"""Requests that need an API key: who gets in, and what answers say about it (rule 3.5)."""

from pathlib import Path

import falcon
import falcon.testing
import pytest
from falcon.inspect import inspect_routes

from analytics_service.app import create_app
from analytics_service.config.settings import Settings
from analytics_service.http import errors
from analytics_service.http.answer import Answer, Validators, send
from analytics_service.http.api_keys import add_key, read_keys
from analytics_service.http.errors import OWN_REQUEST
from analytics_service.http.middleware import Middleware
from analytics_service.http.resource import Resource

PATH = "/api/v1/assets"
Result = falcon.testing.Result


class Assets(Resource):
    """A path that any cache may keep."""

    def respond(self, req: falcon.Request, resp: falcon.Response, **path: str) -> None:
        send(req, resp, Answer(Validators("abc"), b"{}"), "public, max-age=7")


class Service:
    """The path behind a guard."""

    def __init__(self, keys: Path) -> None:
        app = falcon.App(middleware=Middleware(keys=read_keys(keys), origins="*"))
        errors.add_error_handlers(app)
        for path in (PATH, "/api/v1/openapi.json", "/healthz"):
            app.add_route(path, Assets())
        self.client = falcon.testing.TestClient(app)

    def get(self, path: str = PATH, method: str = "GET", **headers: str) -> Result:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.client.simulate_request(method, path, headers=named)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "keys.txt"


@pytest.fixture
def key(file: Path) -> str:
    return add_key(file, "alice")


@pytest.fixture
def asking(file: Path, key: str) -> Service:
    return Service(file)


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
    settings = Settings(api_keys_file=file, clickhouse_url="http://127.0.0.1:1")
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
    assert {path for path, operation in operations.items() if "401" in operation["responses"]} == below


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
