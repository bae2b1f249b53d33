"""Child processes of the service: they run this copy of the package, and end with their session or their parent."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import analytics_service
from analytics_service.supervisor import Child, start_python
from tests.processes import alive, until

# Starts a child of its own, prints its id and waits; neither reacts to SIGTERM.
_STUBBORN_DATASET = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; print(1, flush=True); time.sleep(3600)"],
                         stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
time.sleep(3600)
"""
_ENDS_WITH_PARENT = """
import time
from analytics_service.supervisor import end_with_parent
end_with_parent()
print("ready", flush=True)
time.sleep(3600)
"""
_PARENT = f"""
import os, time
from analytics_service.supervisor import start_python
print(start_python(["-c", {_ENDS_WITH_PARENT!r}], os.environ).pid, flush=True)
time.sleep(3600)
"""


@contextmanager
def started(script: str, tmp_path: Path) -> Iterator[tuple[Child, Path]]:
    """A child that runs a script, and the file that it prints to."""
    output = tmp_path / "output"
    with output.open("wb") as file:
        child = start_python(["-c", script], os.environ, output=file.fileno())
    try:
        yield child, output
    finally:
        child.kill()
        child.end_input()


def test_a_child_imports_the_package_of_its_parent(tmp_path: Path) -> None:
    with started("import analytics_service; print(analytics_service.__file__)", tmp_path) as (child, output):
        assert child.ends_within(60)
        assert child.poll() == 0
    assert output.read_text() == f"{analytics_service.__file__}\n"


def test_a_killed_child_takes_its_whole_session_with_it(tmp_path: Path) -> None:
    with started(_STUBBORN_DATASET, tmp_path) as (child, output):
        until(lambda: output.read_text().endswith("\n"))
        grandchild = int(output.read_text())
        child.terminate()
        assert not child.ends_within(0.0)
        assert alive(grandchild)
        child.kill()
        assert child.poll() == -9
        until(lambda: not alive(grandchild))


def test_a_child_stops_as_on_sigterm_when_its_input_ends(tmp_path: Path) -> None:
    with started(_ENDS_WITH_PARENT, tmp_path) as (child, output):
        until(lambda: output.read_text() == "ready\n")
        child.end_input()
        assert child.ends_within(60)
        assert child.poll() == -15


def test_a_child_stops_when_its_parent_is_killed() -> None:
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, "-c", _PARENT], stdout=subprocess.PIPE, env=environ) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert parent.stdout.readline() == b"ready\n"
        parent.kill()
        parent.wait()
        until(lambda: not alive(child))
