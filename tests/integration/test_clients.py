"""Clients: those that README shows, and those that are generated from the OpenAPI document."""

import importlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from analytics_service.sources.simulated import RICH_ADDRESS
from tests.integration.routes import NOON, ROUTES, Client, get
from tests.integration.servers import listening

# Where .ci/run has installed openapi-typescript, openapi-fetch, TypeScript and Redocly's linter.
_NODE_TOOLS = os.environ.get("CLIENT_NODE_TOOLS")
# As http/README says. A text would be `data` of an unknown type, or of {}.
_USE = """\
import createClient from "openapi-fetch";
import type { paths } from "./api";
const client = createClient<paths, "application/json">({ baseUrl: "http://127.0.0.1:8000" });
const typed = <T>(data: string extends T ? never : T) => data;
export async function use() {
  const prices = await client.GET("/api/v1/assets/prices", { params: { query: { with_text: true } } });
  if (prices.error) return prices.error.error.message;
  const first: string = prices.data.data[0].price.price;
  const query = { start: "now-1d", end: "now", period: "h" } as const;
  const history = await client.GET("/api/v1/assets/price-history", { params: { query } });
  const [series] = history.data!.data.series;
  if ("points" in series) return first + series.points[0].t;
"""


@pytest.fixture(scope="module")
def folder(protocol: Client, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the document."""
    folder = tmp_path_factory.mktemp("clients")
    (folder / "openapi.json").write_bytes(protocol.simulate_get("/api/v1/openapi.json").content)
    return folder


@pytest.fixture(scope="module")
def python_client(folder: Path) -> Path:
    """The folder of a client that openapi-python-client has generated."""
    command = [Path(sys.executable).with_name("openapi-python-client"), "generate", "--meta", "none"]
    command += ["--path", "openapi.json", "--output-path", "generated_client", "--fail-on-warning"]
    # Nobody reads it, so it need not be formatted.
    (folder / "config.yml").write_text("post_hooks: []\n")
    command += ["--config", "config.yml"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "Generating generated_client", "")
    return folder / "generated_client"


def answers(document: Any, protocol: Client, flags: tuple[str, ...]) -> Iterator[tuple[str, str, Any]]:
    """The name of the schema, the path and the answer of every operation, with these flags where it takes them."""
    templates = {
        path.replace(RICH_ADDRESS, "{address}").replace("/accounts/0", "/accounts/{index}"): path for path in ROUTES
    }
    for template, item in document["paths"].items():
        path, operation = templates[template], item["get"]
        taken = {parameter["name"] for parameter in operation["parameters"]}
        query = ROUTES[path].query
        query = "&".join([query, *(f"{flag}=true" for flag in flags if flag in taken and flag not in query)])
        schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
        yield schema["$ref"].rpartition("/")[2], path, get(protocol, path, query).json


@pytest.mark.slow
def test_python_models_hold_every_answer_and_an_error(
    python_client: Path, protocol: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(python_client.parent)
    models = importlib.import_module("generated_client.models")
    document = json.loads((python_client.parent / "openapi.json").read_bytes())
    error = "Failure", "/api/v1/nothing", protocol.simulate_get("/api/v1/nothing").json
    for name, path, answer in (*answers(document, protocol, ("with_text", "with_value", "with_percent")), error):
        # The models parse times, and write UTC in their own way.
        held = json.loads(json.dumps(getattr(models, name).from_dict(answer).to_dict()).replace("+00:00", "Z"))
        assert held == answer, path


@pytest.mark.slow
@pytest.mark.skipif(
    _NODE_TOOLS is None or not Path(_NODE_TOOLS, "node_modules", "openapi-fetch").exists(),
    reason="CLIENT_NODE_TOOLS names no folder with openapi-typescript and openapi-fetch",
)
def test_typescript_knows_the_data_of_every_path(folder: Path) -> None:
    tools = Path(str(_NODE_TOOLS)) / "node_modules" / ".bin"
    done = subprocess.run(
        [tools / "openapi-typescript", "openapi.json", "-o", "api.d.ts"], cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "warn" not in (done.stdout + done.stderr).lower()
    asked = [
        f'  typed((await client.GET("{path}", {{ params: {{}} as any }})).data!.data);\n'
        for path in json.loads((folder / "openapi.json").read_bytes())["paths"]
    ]
    (folder / "use.ts").write_text(f"{_USE}{''.join(asked)}}}\n", "utf-8")
    (folder / "node_modules").symlink_to(tools.parent)
    passes(
        [tools / "tsc", "--noEmit", "--strict", "--module", "esnext", "--moduleResolution", "bundler", "use.ts"], folder
    )


@pytest.mark.skipif(_NODE_TOOLS is None, reason="CLIENT_NODE_TOOLS names no folder with redocly")
def test_the_document_follows_the_rules_that_redocly_recommends(folder: Path) -> None:
    command = [Path(str(_NODE_TOOLS)) / "node_modules" / ".bin" / "redocly", "lint", "--format=json", "openapi.json"]
    environment = {**os.environ, "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true", "REDOCLY_TELEMETRY": "off"}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment)
    assert json.loads(done.stdout)["totals"] == {"errors": 0, "warnings": 0, "ignored": 0}


def passes(command: list[str | Path], folder: Path, **environment: str) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env={**os.environ, **environment})
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def url(protocol: Client) -> Iterator[str]:
    """The service's address on loopback."""
    with listening(protocol.app) as address:
        yield address


QUERY = {"start": NOON - 86_400, "end": NOON, "period": "h", "limit": 7}
README = Path(__file__).parents[2] / "README.md"
USING = README.parent / "analytics_service" / "http" / "README.md"


@pytest.fixture(scope="module")
def points(protocol: Client) -> dict[str, object]:
    """All points of the range, on a page of its own, by asset id."""
    answer = protocol.simulate_get("/api/v1/assets/price-history", params={**QUERY, "limit": 1000}).json
    assert len(answer["data"]["series"][0]["points"]) > 2 * QUERY["limit"]
    return {series["asset"]["id"]: series["points"] for series in answer["data"]["series"]}


def blocks(document: Path, language: str) -> list[str]:
    """The examples of a document in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", document.read_text("utf-8"), re.MULTILINE | re.DOTALL)


def test_the_python_example_collects_all_pages(url: str, points: dict[str, object]) -> None:
    names: dict[str, Any] = {}
    (lines,) = blocks(USING, "python")
    exec(lines, names)  # noqa: S102 - our own README
    assert names["price_points"](url, **QUERY) == points


def test_the_example_of_the_readme_reads_a_history(url: str) -> None:
    (lines,) = blocks(README, "py")
    lines = lines.replace("http://127.0.0.1:8000", url)
    # The simulated history ends in 2025.
    lines = re.sub(r"start=now-\w+&end=now", "start=2025-02-01&end=2025-03-01", lines)
    names: dict[str, Any] = {}
    exec(lines, names)  # noqa: S102 - our own README
    assert [*names["prices"].columns][-2:] == ["symbol", "v"]
    assert len(names["prices"]["v"]) > 100
    assert len(set(names["prices"]["v"])) > 10
