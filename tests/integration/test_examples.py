"""The files that `example` prints, read by the programs that they are for. Tests of missing programs are skipped."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import urllib3

from analytics_service.http.answer import failure
from analytics_service.http.errors import CASES
from analytics_service.store.connection import Store
from analytics_service.store.ledger import HEADS_VIEW
from analytics_service.store.sql import statements
from tests.clickhouse import Client
from tests.integration.conftest import Run
from tests.processes import free_port, until
from tests.unit.test_cli import run
from tests.unit.test_examples import BOARDS, panels, printed

_NGINX = """
pid {folder}/nginx.pid;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/example.conf;
}}
"""
GIB = 2**30
# Series as Prometheus has them after a scrape a minute, and their values for an hour: `0+6x60` grows by 6.
_OF = 'instance="a",job="analytics-service"'
_BAD = {
    f"up{{{_OF}}}": "0x60",
    f"analytics_store_up{{{_OF}}}": "0x60",
    f'analytics_store_replica_up{{shard="1",address="a:9000",{_OF}}}': "0x60",
    f'analytics_store_replica_up{{shard="1",address="b:9000",{_OF}}}': "0x60",
    f"analytics_store_disk_free_bytes{{{_OF}}}": f"{GIB - 1}x60",
    f"analytics_store_disk_size_bytes{{{_OF}}}": f"{5 * GIB}x60",
    f"analytics_schema_current{{{_OF}}}": "0x60",
    # A request a second, of which one in ten fails, all slower than a second.
    f'analytics_request_seconds_count{{route="/",status="200",{_OF}}}': "0+54x60",
    f'analytics_request_seconds_count{{route="/",status="503",{_OF}}}': "0+6x60",
    f'analytics_request_seconds_bucket{{route="/",status="200",le="1",{_OF}}}': "0x60",
    f'analytics_request_seconds_bucket{{route="/",status="200",le="2.5",{_OF}}}': "0+54x60",
    f'analytics_request_seconds_bucket{{route="/",status="200",le="+Inf",{_OF}}}': "0+54x60",
    f'analytics_store_query_errors_total{{query="ledger",error="StoreUnavailable",{_OF}}}': "0+6x60",
    f'analytics_snapshot_fresh{{family="rates",{_OF}}}': "0x60",
    f'analytics_price_age_seconds{{asset="native;a",symbol="A",{_OF}}}': "46000+60x60",
    f'analytics_doubts{{what="jump",{_OF}}}': "1x60",
    f'analytics_snapshot_ahead{{family="prices",{_OF}}}': "1x60",
    f'analytics_data_losses{{family="markets",{_OF}}}': "2x60",
    f'analytics_job_runs_total{{exported_job="prices",outcome="failed",{_OF}}}': "0+1x60",
    f'analytics_job_runs_total{{exported_job="prices",outcome="skipped",{_OF}}}': "0+1x60",
    f'analytics_history_gaps{{family="prices",{_OF}}}': "3x60",
    f'analytics_price_usd{{asset="native;a",symbol="A",{_OF}}}': "8x10 10x20 8.9x30",
    f"analytics_debt_at_risk_usd{{{_OF}}}": "1000001x60",
    f'analytics_utilization_ratio{{asset="native;a",symbol="A",{_OF}}}': "0.951x60",
    f'analytics_health_ratio{{address="0xa",account_index="0",{_OF}}}': "1.09x60",
    f'analytics_value_known{{history="tvl",{_OF}}}': "1x60",
    f'analytics_health_known{{address="0xb",account_index="0",{_OF}}}': "0x60",
}
_GOOD = {
    f"up{{{_OF}}}": "1x60",
    f"analytics_store_up{{{_OF}}}": "1x60",
    f'analytics_store_replica_up{{shard="1",address="a:9000",{_OF}}}': "1x60",
    f'analytics_store_replica_up{{shard="2",address="b:9000",{_OF}}}': "1x60",
    f"analytics_store_disk_free_bytes{{{_OF}}}": f"{GIB}x60",
    f"analytics_store_disk_size_bytes{{{_OF}}}": f"{20 * GIB}x60",
    f"analytics_schema_current{{{_OF}}}": "1x60",
    f'analytics_request_seconds_count{{route="/",status="200",{_OF}}}': "0+1000x60",
    f'analytics_request_seconds_count{{route="/",status="503",{_OF}}}': "0+1x60",
    f'analytics_request_seconds_bucket{{route="/",status="200",le="1",{_OF}}}': "0+1000x60",
    f'analytics_request_seconds_bucket{{route="/",status="200",le="+Inf",{_OF}}}': "0+1000x60",
    f'analytics_store_query_errors_total{{query="ledger",error="StoreUnavailable",{_OF}}}': "0x60",
    f'analytics_snapshot_fresh{{family="prices",{_OF}}}': "1x60",
    f'analytics_price_age_seconds{{asset="native;a",symbol="A",{_OF}}}': "46800x60",
    f'analytics_doubts{{what="jump",{_OF}}}': "0x60",
    f'analytics_snapshot_ahead{{family="prices",{_OF}}}': "0x60",
    f'analytics_data_losses{{family="markets",{_OF}}}': "0x60",
    f'analytics_job_runs_total{{exported_job="prices",outcome="done",{_OF}}}': "0+1x60",
    f'analytics_job_runs_total{{exported_job="prices",outcome="failed",{_OF}}}': "1x60",
    f'analytics_history_gaps{{family="prices",{_OF}}}': "0x60",
    f'analytics_price_usd{{asset="native;a",symbol="A",{_OF}}}': "8x10 10x20 9.1x30",
    f"analytics_debt_at_risk_usd{{{_OF}}}": "1000000x60",
    f'analytics_utilization_ratio{{asset="native;a",symbol="A",{_OF}}}': "0.95x60",
    f'analytics_health_ratio{{address="0xa",account_index="0",{_OF}}}': "1.1x60",
    f'analytics_value_known{{history="tvl",{_OF}}}': "1x60",
}


# Those of this environment, of Node, and of the system.
_NODE = Path(os.environ.get("CLIENT_NODE_TOOLS", ".")) / "node_modules" / ".bin"
_PROGRAMS = os.pathsep.join([str(Path(sys.executable).parent), str(_NODE), os.environ["PATH"]])


def accepted(program: str, *arguments: str) -> str:
    """Run a program on an example, and return what it says; the test is skipped where there is no such program."""
    path = shutil.which(program, path=_PROGRAMS)
    if path is None:
        pytest.skip(f"{program} is not installed")
    done = subprocess.run([path, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_prometheus_accepts_the_rules(tmp_path: Path) -> None:
    rules = tmp_path / "rules.yml"
    rules.write_text(printed("prometheus-rules"))
    assert "SUCCESS: 22 rules found" in accepted("promtool", "check", "rules", str(rules))


@pytest.mark.parametrize(("series", "firing"), [(_BAD, 22), (_GOOD, 0)], ids=["bad", "good"])
def test_every_alert_fires_when_all_is_bad_and_none_when_all_is_well(
    tmp_path: Path, series: dict[str, str], firing: int
) -> None:
    """As Prometheus scrapes the metrics: it has a label `job` of its own."""
    (tmp_path / "rules.yml").write_text(printed("prometheus-rules"))
    test = {
        "rule_files": ["rules.yml"],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [{"series": one, "values": values} for one, values in series.items()],
                "promql_expr_test": [
                    {
                        "expr": 'count(count by (alertname) (ALERTS{alertstate="firing"})) or vector(0)',
                        "eval_time": "50m",
                        "exp_samples": [{"labels": "{}", "value": firing}],
                    }
                ],
            }
        ],
    }
    # JSON is YAML, too.
    (tmp_path / "test.yml").write_text(json.dumps(test))
    assert "SUCCESS" in accepted("promtool", "test", "rules", str(tmp_path / "test.yml"))


@pytest.mark.parametrize("name", BOARDS)
def test_prometheus_accepts_the_queries_of_a_dashboard(tmp_path: Path, name: str) -> None:
    lines = ["groups:", "- name: dashboard", "  rules:"]
    targets = [target["expr"] for panel in panels(name) for target in panel["targets"]]
    for number, expression in enumerate(targets):
        query = expression.replace("$__rate_interval", "1m").replace("$__range", "1h")
        lines += [f"  - record: panel_{number}", f"    expr: '{query}'"]
    rules = tmp_path / "dashboard.yml"
    rules.write_text("\n".join(lines))
    assert f"SUCCESS: {len(targets)} rules found" in accepted("promtool", "check", "rules", str(rules))


def test_clickhouse_parses_what_servers_of_a_cluster_need(store: Store, client: Client, run: Run) -> None:
    """The first of the statements answers those that make every table on a new server."""
    needed = statements(printed("cluster").replace("'analytics'", f"'{store.database}'"))
    made = [row[0] for row in run(needed[0])]
    for statement in [*needed, *made]:
        client.query("SELECT formatQuery({statement:String})", {"statement": statement})
    stored = run("SELECT name FROM system.tables WHERE database = currentDatabase() AND NOT empty(data_paths)")
    created = [re.match(rf"CREATE (TABLE|MATERIALIZED VIEW) {store.database}\.(\w+) UUID '", each) for each in made]
    assert {match[2] for match in created if match} == {*(name for (name,) in stored), HEADS_VIEW}
    assert [match[1] for match in created if match].index("MATERIALIZED VIEW") == len(made) - 1


@pytest.mark.parametrize("name", ["systemd", "systemd-jobs"])
def test_systemd_has_nothing_to_say_about_the_units_and_finds_them_little_exposed(tmp_path: Path, name: str) -> None:
    """It would also warn of what it ignores, and of a program that is not there. The scale of exposure ends at 100."""
    unit = tmp_path / f"{name}.service"
    # In a process of its own, because the unit names the program that prints it.
    arguments = [sys.executable, "-m", "analytics_service.cli", "example", name]
    unit.write_bytes(subprocess.run(arguments, capture_output=True, check=True).stdout)
    assert accepted("systemd-analyze", "verify", "--man=no", str(unit)) == ""
    assert "OOMPolicy=continue\n" in unit.read_text("utf-8")
    accepted("systemd-analyze", "security", "--offline=true", "--threshold=30", str(unit))


@pytest.mark.parametrize(
    ("linter", "file"), [(("hadolint",), "Dockerfile"), (("dclint", "--max-warnings", "0"), "compose.yaml")]
)
def test_linters_have_nothing_to_say_about_the_files_for_docker(
    tmp_path: Path, linter: tuple[str, ...], file: str
) -> None:
    assert run("example", "docker", "--into", str(tmp_path)).exit_code == 0
    assert accepted(*linter, str(tmp_path / file)).strip() == ""


class Echo(BaseHTTPRequestHandler):
    """Answers with the id of the request."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.headers["X-Request-ID"].encode())

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[str]:
    """The address of an nginx in front of Echo. It lets a client ask twice at once, and then once in a minute."""
    # The server is closed also where there is no nginx, and the test is skipped.
    with ThreadingHTTPServer(("127.0.0.1", 0), Echo) as behind:
        port = free_port()
        changes = {"listen 80;": f"listen 127.0.0.1:{port};", "rate=50r/s": "rate=1r/m", "burst=100": "burst=1"}
        changes["server 127.0.0.1:8000;"] = f"server 127.0.0.1:{behind.server_port};"
        example = printed("nginx")
        for old, new in changes.items():
            assert old in example
            example = example.replace(old, new)
        (tmp_path / "example.conf").write_text(example)
        (tmp_path / "nginx.conf").write_text(_NGINX.format(folder=tmp_path))
        arguments = ("-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf"), "-e", str(tmp_path / "error.log"))
        assert "test is successful" in accepted("nginx", "-t", *arguments)
        threading.Thread(target=behind.serve_forever, daemon=True).start()
        with subprocess.Popen(["nginx", "-g", "daemon off;", *arguments]) as process:
            until(lambda: is_open(port))
            yield f"127.0.0.1:{port}"
            process.terminate()
        behind.shutdown()


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_the_proxy_keeps_request_ids_and_refuses_as_the_service_does(proxy: str) -> None:
    asked: list[dict[str, str]] = [{"X-Request-ID": "mine"}, {}, {}]
    answers = [urllib3.request("GET", f"http://{proxy}/", headers=headers, retries=False) for headers in asked]
    assert [answer.status for answer in answers] == [200, 200, 429]
    assert answers[0].data == b"mine"
    assert re.fullmatch(b"[0-9a-f]{32}", answers[1].data)
    refused = answers[2].json()
    assert {**refused, "error": {**refused["error"], "message": ""}} == json.loads(
        failure(HTTPStatus.TOO_MANY_REQUESTS, "rate_limited", CASES["rate_limited"].scope, "")
    )
    assert answers[2].headers["Content-Type"] == "application/json"
    assert answers[2].headers["Retry-After"] == "1"
