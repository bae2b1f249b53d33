"""The files that `example` prints: complete, and about metrics and settings that exist."""

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
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
    result = run("example", name)
    assert result.exit_code == 0, result.output
    return result.output


def panels(name: str) -> list[dict[str, Any]]:
    board: dict[str, Any] = json.loads(printed(name))
    return list(board["panels"])


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


@pytest.mark.parametrize(("name", "begin"), [("prometheus-rules", "- alert: "), ("grafana-alerts", "- uid: ")])
def test_all_alerts_say_what_is_wrong_and_what_to_do(name: str, begin: str) -> None:
    alerts = printed(name).split(begin)[1:]
    assert alerts
    for alert in alerts:
        assert re.search(r"severity: (critical|warning)\b", alert)
        assert all(f"{part}: " in alert for part in ("summary", "description"))


@pytest.mark.parametrize("name", ["prometheus-rules", "grafana-http"])
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


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A folder with the package that is an example of a source."""
    result = run("example", "source", "--into", str(tmp_path))
    assert result.exit_code == 0, result.output
    return tmp_path


def test_the_printed_source_passes_its_tests_and_the_check(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if it was installed: its folder is on the path, with the entry point that it declares."""
    project = tomllib.loads((package / "pyproject.toml").read_text("utf-8"))["project"]
    metadata = package / "my_source-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: 1\n")
    lines = (
        f"[{group}]\n" + "\n".join(f"{name} = {target}" for name, target in entries.items())
        for group, entries in project["entry-points"].items()
    )
    (metadata / "entry_points.txt").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(package)
    result = run("source", "check", "mysource", "--minutes", "0", ANALYTICS_DATA_DIR=str(package / "data"))
    assert result.exit_code == 0, result.output
    assert result.output.endswith("Nothing is wrong with this source.\n")
    # The snapshots went into a temporary store.
    assert not (package / "data").exists()
    refused = run("source", "check", "mysource:none.csv")
    assert (refused.exit_code, "or mysource: followed by the path of a CSV" in refused.stderr) == (2, True)
    # One of its tests is the same check.
    assert "2 passed, 1 deselected" in own_tests(package, "-k", "not nothing_is_wrong", PYTHONPATH=str(package))


def own_tests(package: Path, *options: str, **environ: str) -> str:
    """What pytest prints of the package's tests."""
    call = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, "test_my_source.py"]
    environment = os.environ | environ
    return subprocess.run(call, cwd=package, env=environment, capture_output=True, text=True, timeout=120).stdout


@pytest.mark.slow
def test_the_printed_source_is_installed_by_pip_with_its_data(package: Path, tmp_path: Path) -> None:
    target = tmp_path / "installed"
    call = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(target), str(package)]
    subprocess.run(call, check=True, timeout=300)
    checks = [sys.executable, "-m", "analytics_service.cli", "source", "check", "mysource", "--minutes", "0"]
    environ = os.environ | {"PYTHONPATH": str(target)}
    checked = subprocess.run(checks, env=environ, capture_output=True, text=True, timeout=120, check=False)
    assert checked.stdout.endswith("Nothing is wrong with this source.\n"), checked.stderr
    assert "3 passed" in own_tests(package, PYTHONPATH=str(target))


def test_an_example_is_written_without_replacing_anything(package: Path) -> None:
    (package / "pyproject.toml").write_text("mine")
    again = run("example", "source", "--into", str(package))
    assert (again.exit_code, "pyproject.toml exists and is not replaced" in again.stderr) == (2, True)
    assert (package / "pyproject.toml").read_text() == "mine"
    assert run("example", "nginx", "--into", str(package / "etc")).exit_code == 0
    assert (package / "etc" / "nginx.conf").read_text() == printed("nginx")
