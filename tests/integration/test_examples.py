"""The files that `example` prints, read by the programs that they are for. Tests of missing programs are skipped."""

import json
import operator
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import urllib3
import yaml

from analytics_service.clickhouse.running import RESEARCHER_PASSWORD, read_password
from analytics_service.config.settings import Settings
from analytics_service.embedded.configuration import RESEARCHER
from analytics_service.market.instants import DAY
from analytics_service.market.prices import Price
from analytics_service.sources.simulated.source import SimulatedSource
from analytics_service.store.job_runs import JobRun, record_job_run
from jobs.registry import JOBS
from jobs.runner import take_snapshot
from tests.clickhouse import client as own_client
from tests.integration.conftest import Simulated
from tests.integration.databases import copied
from tests.integration.routes import NOON, at
from tests.unit.test_cli import run
from tests.unit.test_examples import panels, printed

GIB = 2**30
# Series as Prometheus has them after a scrape a minute, and their values for an hour: `0+6x60` grows by 6.
_OF = 'instance="a",job="analytics-service"'
_BAD = {
    f"up{{{_OF}}}": "0x60",
    f"analytics_store_up{{{_OF}}}": "0x60",
    f"analytics_store_disk_free_bytes{{{_OF}}}": f"{GIB - 1}x60",
    f"analytics_store_disk_size_bytes{{{_OF}}}": f"{5 * GIB}x60",
    f"analytics_schema_current{{{_OF}}}": "0x60",
    # A request a second, of which one in ten fails, all slower than a second.
    f'analytics_request_seconds_count{{route="/",status="200",{_OF}}}': "0+54x60",
    f'analytics_request_seconds_count{{route="/",status="503",{_OF}}}': "0+6x60",
    f'analytics_request_seconds_bucket{{route="/",status="200",le="1",{_OF}}}': "0x60",
    f'analytics_request_seconds_bucket{{route="/",status="200",le="2.5",{_OF}}}': "0+54x60",
    f'analytics_request_seconds_bucket{{route="/",status="200",le="+Inf",{_OF}}}': "0+54x60",
    f'analytics_store_query_errors_total{{query="read_ledger",error="StoreUnavailable",{_OF}}}': "0+6x60",
    f'analytics_snapshot_fresh{{dataset="rates",{_OF}}}': "0x60",
    f'analytics_snapshot_ahead{{dataset="prices",{_OF}}}': "1x60",
    f'analytics_data_losses{{dataset="markets",{_OF}}}': "2x60",
    f'analytics_job_runs_total{{exported_job="prices",outcome="failed",{_OF}}}': "0+1x60",
    f'analytics_job_runs_total{{exported_job="prices",outcome="skipped",{_OF}}}': "0+1x60",
    f'analytics_history_gaps{{dataset="prices",{_OF}}}': "3x60",
}
_GOOD = {
    f"up{{{_OF}}}": "1x60",
    f"analytics_store_up{{{_OF}}}": "1x60",
    f"analytics_store_disk_free_bytes{{{_OF}}}": f"{GIB}x60",
    f"analytics_store_disk_size_bytes{{{_OF}}}": f"{20 * GIB}x60",
    f"analytics_schema_current{{{_OF}}}": "1x60",
    f'analytics_request_seconds_count{{route="/",status="200",{_OF}}}': "0+1000x60",
    f'analytics_request_seconds_count{{route="/",status="503",{_OF}}}': "0+1x60",
    f'analytics_request_seconds_bucket{{route="/",status="200",le="1",{_OF}}}': "0+1000x60",
    f'analytics_request_seconds_bucket{{route="/",status="200",le="+Inf",{_OF}}}': "0+1000x60",
    f'analytics_store_query_errors_total{{query="read_ledger",error="StoreUnavailable",{_OF}}}': "0x60",
    f'analytics_snapshot_fresh{{dataset="prices",{_OF}}}': "1x60",
    f'analytics_snapshot_ahead{{dataset="prices",{_OF}}}': "0x60",
    f'analytics_data_losses{{dataset="markets",{_OF}}}': "0x60",
    f'analytics_job_runs_total{{exported_job="prices",outcome="done",{_OF}}}': "0+1x60",
    f'analytics_job_runs_total{{exported_job="prices",outcome="failed",{_OF}}}': "1x60",
    f'analytics_history_gaps{{dataset="prices",{_OF}}}': "0x60",
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
    assert "SUCCESS: 13 rules found" in accepted("promtool", "check", "rules", str(rules))


@pytest.mark.parametrize(("series", "firing"), [(_BAD, 13), (_GOOD, 0)], ids=["bad", "good"])
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


def test_prometheus_accepts_the_queries_of_its_dashboard(tmp_path: Path) -> None:
    lines = ["groups:", "- name: dashboard", "  rules:"]
    targets = [target["expr"] for panel in panels("grafana-http") for target in panel["targets"]]
    for number, expression in enumerate(targets):
        query = expression.replace("$__rate_interval", "1m").replace("$__range", "1h")
        lines += [f"  - record: panel_{number}", f"    expr: '{query}'"]
    rules = tmp_path / "dashboard.yml"
    rules.write_text("\n".join(lines))
    assert f"SUCCESS: {len(targets)} rules found" in accepted("promtool", "check", "rules", str(rules))


class Wrong(SimulatedSource):
    """Its first price has jumped."""

    def prices(self, at: datetime) -> Sequence[Price]:
        first, *others = super().prices(at)
        return [replace(first, usd=first.usd * 100), *others]


Ask = Callable[[str], list[list[Any]]]


@pytest.fixture(scope="module")
def ask(server: Settings, simulated: Simulated) -> Iterator[Ask]:
    """Asks, as a researcher, a store of a past day: with a price that may be wrong, a scheduler and a loss of rows."""
    settings = replace(server, clickhouse_database="test_alarming")
    with copied(settings, simulated.store, views=True) as store, own_client(settings) as client:
        take_snapshot(JOBS["prices"], Wrong("1"), store, at(NOON + 60))
        record_job_run(
            store, [JobRun("prices", "host:1", 60, NOON + 120, ran_at=NOON + 60, outcome="done", duration_ms=9)]
        )
        client.command("INSERT INTO loss VALUES ('prices', [('price', 0, 0, '')], 1)")
        # The user's default.
        client.command("CREATE DATABASE IF NOT EXISTS analytics")
        yield partial(_rows, settings)


def _rows(settings: Settings, sql: str) -> list[list[Any]]:
    headers = {
        "X-ClickHouse-User": RESEARCHER,
        "X-ClickHouse-Key": read_password(settings.data_dir / RESEARCHER_PASSWORD),
        "X-ClickHouse-Database": settings.clickhouse_database,
        "X-ClickHouse-Format": "JSONCompact",
    }

    answer = urllib3.request("POST", str(settings.clickhouse_url), body=sql, headers=headers, timeout=60)
    assert answer.status == 200, answer.data
    return list(answer.json()["data"])


def expanded(sql: str, seconds: int, address: str, symbols: Sequence[str] = ()) -> str:
    """A query as the data source sends it, with its macros and the variables of the dashboard."""
    between = rf"\1 >= toDateTime({NOON + 60 - seconds}) AND \1 <= toDateTime({NOON + 60})"
    sql = re.sub(r"\$__timeFilter\(([\w.]+)\)", between, sql)
    sql = re.sub(r"\$__timeInterval\(([\w.]+)\)", r"toStartOfInterval(toDateTime(\1), INTERVAL 60 second)", sql)
    sql = sql.replace("$__fromTime", f"toDateTime({NOON + 60 - seconds})").replace(
        "$__toTime", f"toDateTime({NOON + 60})"
    )
    quoted = ", ".join(f"'{symbol}'" for symbol in symbols)
    return sql.replace("${asset:singlequote}", quoted).replace("$address", address).replace("0xADDRESS", address)


def test_every_panel_of_the_dashboard_over_sql_has_rows(ask: Ask) -> None:
    variables = {each["name"]: each["query"] for each in json.loads(printed("grafana"))["templating"]["list"]}
    symbols = [symbol for (symbol,) in ask(variables["asset"])]
    (address,), *_ = ask(variables["address"])
    for panel in panels("grafana"):
        (target,) = panel["targets"]
        rows = ask(expanded(target["rawSql"], 7 * DAY, address, symbols))
        assert rows, panel["title"]
        assert target["queryType"] == ("timeseries" if panel["type"] == "timeseries" else "table")


def test_alerts_over_sql_fire_for_what_is_wrong_in_the_store(ask: Ask) -> None:
    """Its data is of a past day, a price has jumped, rows are lost, and the address, with its debt, is at risk."""
    (address, health), *_ = ask("SELECT address, min(health) FROM account_risk GROUP BY address ORDER BY 2")
    assert health < 1.1
    firing, compare = set(), {"gt": operator.gt, "lt": operator.lt}
    (group,) = yaml.safe_load(printed("grafana-alerts"))["groups"]
    for rule in group["rules"]:
        query, threshold = rule["data"]
        evaluator = threshold["model"]["conditions"][0]["evaluator"]
        rows = ask(expanded(query["model"]["rawSql"], query["relativeTimeRange"]["from"], address))
        assert rows, rule["title"]
        # Texts are labels, and there is one number.
        numbers = [value for row in rows for value in row if not isinstance(value, str)]
        assert len(numbers) == len(rows), rule["title"]
        if any(compare[evaluator["type"]](number, evaluator["params"][0]) for number in numbers):
            firing.add(rule["title"])
    assert firing == {
        "A dataset is late",
        "A price is old",
        "Debt is at risk",
        "Health of an address",
        "Rows are lost",
        "Values may be wrong",
    }


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
