"""What sql/README.md shows, and the examples, as a researcher pastes them into a shell beside a new service."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from analytics_service.clickhouse.queries import sql_scripts
from tests.acceptance.conftest import Service, kill, stop
from tests.processes import PATIENCE, until

ROOT = Path(__file__).parents[2]
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", (ROOT / "sql" / "README.md").read_text("utf-8"), re.MULTILINE | re.DOTALL)
_SQL = re.compile(r"http://127\.0\.0\.1:(\d+)/play")


@pytest.fixture(scope="module")
def sampled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A new `up` as the README starts it, with the sample's whole past and two snapshots of its schedule."""
    running = Service(tmp_path_factory.mktemp("sampled") / "data", source="simulated")
    try:
        process = running.up()
        until(lambda: running.printed().count("prices: snapshot of") > 1)
        until(lambda: running.get("/api/v1/status/health")[1]["data"]["filling"] is False)
        yield running
        stop(process)
    finally:
        kill(running)


def answer(sampled: Service, language: str, code: str) -> str:
    """What code of the README prints, with the port and the folder of this service in it; SQL goes the way of the
    README's own command."""
    found = _SQL.search(sampled.printed())
    assert found
    if language == "sql":
        (shell,) = (block for kind, block in BLOCKS if kind == "sh" and "--data-binary @" in block)
        language, code = "sh", re.sub(r"@\S+", "@- <<'SQL'\n", shell.strip()) + code + "SQL\n"
    code = code.replace("PORT", found[1]).replace("DATA", str(sampled.data_dir))
    command = ["bash", "-euc"] if language == "sh" else [sys.executable, "-c"]
    done = subprocess.run([*command, code], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    assert "Exception" not in done.stdout, done.stdout
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(("language", "code"), BLOCKS)
def test_blocks_of_the_readme_run_as_they_stand(sampled: Service, language: str, code: str) -> None:
    printed = answer(
        sampled, language, f"{code}\nprint(highest, pandas_frame, polars_frame)" if language == "python" else code
    )
    assert len(printed.splitlines()) > 1


@pytest.mark.slow
@pytest.mark.parametrize("script", sql_scripts("examples"), ids=lambda script: script.stem)
def test_examples_have_rows(sampled: Service, script: Path) -> None:
    """Between a heading and its line, and a line below."""
    assert len(answer(sampled, "sql", script.read_text("utf-8")).splitlines()) > 3
