"""The page for people, as browsers get it."""

import re
from pathlib import Path

import falcon.testing
import pytest

from analytics_service.app import create_app
from analytics_service.config.settings import Settings
from analytics_service.web import files

_OURS = Path(files.__file__).parent / "static"
_NOWHERE = "http://127.0.0.1:1"


@pytest.fixture(scope="module")
def client() -> falcon.testing.TestClient:
    """A service whose store is away: pages need none."""
    return falcon.testing.TestClient(create_app(Settings(clickhouse_url=_NOWHERE)))


def linked(html: str) -> list[str]:
    """Addresses are relative to a page at the root."""
    return [f"/{name}" for name in re.findall(r'(?:src|href|data-charts)="(static/[^"]+)"', html)]


def test_the_page_and_its_scripts_name_no_path_from_the_root() -> None:
    """A proxy may serve it below a path of its own."""
    assert not re.search(r'(?:src|href|data-charts)="/', files.page(keys="false").decode())
    from_root = re.compile(r"[\"'`(]/(?:api|docs|static|operations|metrics)\b|href: \"/")
    assert [script.name for script in _OURS.glob("*.js") if from_root.search(script.read_text("utf-8"))] == []


def _version(client: falcon.testing.TestClient) -> str:
    """The version of our own files, which stands in their paths."""
    (script,) = {name for name in linked(client.simulate_get("/").text) if name.endswith("/main.js")}
    return script.split("/")[2]


def test_the_page_allows_scripts_and_requests_of_its_own_origin_only(client: falcon.testing.TestClient) -> None:
    answer = client.simulate_get("/")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    policy = dict(part.split(" ", 1) for part in answer.headers["content-security-policy"].split("; "))
    assert policy["default-src"] == policy["frame-ancestors"] == "'none'"
    assert policy["script-src"] == policy["connect-src"] == "'self'"


def test_the_page_is_asked_for_every_time_and_its_files_once(client: falcon.testing.TestClient) -> None:
    page = client.simulate_get("/")
    assert page.headers["cache-control"] == "no-cache"
    assert client.simulate_get("/", headers={"If-None-Match": page.headers["etag"]}).status_code == 304
    names = linked(page.text)
    loaded = {name.rpartition("/")[2] for name in names}
    assert loaded >= {"icon.svg", "style.css", "main.js", "plotly.min.js"}
    # Modules that others import are named, too.
    assert loaded >= {"overview.js", "spark.js"}
    for name in names:
        assert client.simulate_get(name).headers["cache-control"] == "public, max-age=31536000, immutable"


@pytest.mark.parametrize("name", ["main.js", "plotly.min.js"])
def test_under_another_version_a_file_is_sent_but_may_not_be_cached(
    client: falcon.testing.TestClient, name: str
) -> None:
    """While workers are replaced, pages of new ones ask old ones for files."""
    (own,) = {path for path in linked(client.simulate_get("/").text) if path.endswith(f"/{name}")}
    answer = client.simulate_get(f"/static/other/{name}")
    assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-store")
    assert answer.content == client.simulate_get(own).content


@pytest.mark.parametrize("path", ["/static/{version}/none.js", "/static/{version}/index.html", "/static/other/none.js"])
def test_another_name_is_an_unknown_path(client: falcon.testing.TestClient, path: str) -> None:
    version = _version(client)
    answer = client.simulate_get(path.format(version=version))
    assert (answer.status_code, answer.json["error"]["kind"]) == (404, "path_unknown")


def test_the_page_names_no_other_host_and_leaves_no_placeholder() -> None:
    for file in _OURS.iterdir():
        text = file.read_text()
        hosts = {*re.findall(r"https?://[\w.]+", text)} - {"http://www.w3.org"}
        assert not hosts, file
    assert "{{" not in files.page(keys="false").decode()
