"""Child processes of the service: they run this copy of the package, and end with their session or their parent."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import analytics_service
from analytics_service.config.settings import Settings
from analytics_service.errors import SettingError
from analytics_service.server.address import listen, require_free
from analytics_service.supervisor import Child, start_python
from tests.processes import alive, free_port, until

# Starts a child of its own, prints its id and waits; neither reacts to SIGTERM.
_STUBBORN_FAMILY = """
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
# Serves for a while after its parent is gone, as gunicorn does for clients that are slow.
_LINGERS = """
import sys, time
sys.stdin.read()
time.sleep(1)
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
    with started(_STUBBORN_FAMILY, tmp_path) as (child, output):
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


@pytest.mark.parametrize("at_path", [False, True])
def test_an_address_that_a_killed_service_still_uses_is_waited_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], at_path: bool
) -> None:
    bind = f"unix:{tmp_path}/http.sock" if at_path else f"127.0.0.1:{free_port()}"
    with listen(bind, Settings(bind=bind)) as listener:
        child = start_python(["-c", _LINGERS], os.environ, pass_fds=(listener.fileno(),))
    settings = Settings(bind=bind, metrics_bind="none")
    try:
        with pytest.raises(SettingError, match=f"Nothing can listen on {bind}"):
            require_free(settings)
        assert capsys.readouterr().out == ""
        child.end_input()
        require_free(settings)
        assert child.ends_within(60)
    finally:
        child.kill()
    waiting = f"Waiting for {bind}, which processes of a service that was killed still use; Ctrl-C to stop.\n"
    assert capsys.readouterr().out == waiting


def test_a_port_that_a_killed_service_does_not_leave_in_time_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        bind = f"127.0.0.1:{listener.getsockname()[1]}"
        child = start_python(["-c", "import time; time.sleep(3600)"], os.environ, pass_fds=(listener.fileno(),))
    child.end_input()
    try:
        with pytest.raises(SettingError, match=f"Nothing can listen on {bind}"):
            require_free(Settings(bind=bind, metrics_bind="none"), patience=0.5)
    finally:
        child.kill()
