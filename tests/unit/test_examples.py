"""The files that `example` prints: complete, and about metrics and settings that exist."""

import ast
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import analytics_service
from analytics_service.config.settings import Settings, table
from tests.unit.test_cli import run

_PACKAGE = Path(analytics_service.__file__).parent
# The modules that declare metrics.
_DECLARING = ("http/instruments.py", "resources/metrics.py")
# What Prometheus appends to the names of counters and histograms.
_SUFFIX = re.compile(r"_(total|bucket|count|sum)$")
_NAME = re.compile(r"\banalytics_[a-z_]+")


def printed(name: str) -> str:
    """What `example` prints."""
    result = run("example", name)
    assert result.exit_code == 0, result.output
    return result.output


def panels() -> list[dict[str, Any]]:
    """The panels of the dashboard."""
    board: dict[str, Any] = json.loads(printed("grafana"))
    return list(board["panels"])


def expressions() -> list[str]:
    """Every query of the dashboard."""
    return [target["expr"] for panel in panels() for target in panel["targets"]]


def test_the_settings_file_has_every_setting_with_its_default_and_its_help() -> None:
    """Without the marks in front of them its lines change nothing."""
    lines = printed("env").splitlines()
    for row in table():
        assert f"# {row.help}" in lines
    assert [line for line in lines if line and not line.startswith("#")] == []
    values = dict(line[1:].split("=", 1) for line in lines if line.startswith("#ANALYTICS_"))
    assert list(values) == [row.variable for row in table()]
    named = {variable: value for variable, value in values.items() if value}
    # The data folder is that of the unit, not that of the user who prints the file.
    assert Settings.from_environment(named) == replace(Settings(), data_dir=Path("/var/lib/analytics-service"))


def test_ten_alerts_say_what_is_wrong_and_what_to_do() -> None:
    alerts = printed("prometheus-rules").split("- alert: ")[1:]
    assert len(alerts) == 10
    for alert in alerts:
        assert re.search(r"severity: (critical|warning)\n", alert)
        assert all(f"{part}: " in alert for part in ("expr", "summary", "description"))


def test_the_panels_of_the_dashboard_lie_side_by_side_and_use_its_variables() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in panels():
        assert panel["datasource"]["uid"] == "${datasource}"
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert taken.isdisjoint(cells)
        assert max(x for x, _ in cells) < 24
        taken |= cells
    assert len({panel["id"] for panel in panels()}) == len(panels())
    assert all('instance=~"$instance"' in expression for expression in expressions())


@pytest.mark.parametrize("name", ["prometheus-rules", "grafana"])
def test_every_metric_that_is_asked_for_is_declared(name: str) -> None:
    declared = {
        node.value
        for module in _DECLARING
        for node in ast.walk(ast.parse((_PACKAGE / module).read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _NAME.fullmatch(node.value)
    }
    asked_for = set(_NAME.findall(printed(name))) - {"analytics_service"}
    assert asked_for
    assert {_SUFFIX.sub("", metric) for metric in asked_for} <= declared


def test_the_proxy_does_not_show_metrics_and_leaves_compression_to_the_service() -> None:
    proxy = printed("nginx")
    assert re.search(r"location = /metrics \{\s+return 404;", proxy)
    assert "gzip off;" in proxy
    assert 'proxy_set_header Connection "";' in proxy
