"""Fills in the embedded ClickHouse's configuration: config.xml and users.xml."""

import hashlib
import os
import re
import sys
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from analytics_service.clickhouse.running import KEPT_FREE, native_port
from analytics_service.config.private_files import NewFile
from analytics_service.store.researcher import fixed_settings, researcher_grants

USER = "analytics"
# Bytes of the longest query parameter, enough for some 200,000 ids. The default is enough for 2,000.
_PARAMETER_BYTES = 16 * 2**20
# The user for people. Its limits leave most of the machine to the service.
RESEARCHER = "researcher"
# Seconds that a query of this user may take.
_QUERY_SECONDS = 300
_HTTP_PORT = re.compile("<http_port>([0-9]+)</http_port>")
# Files with a container's memory limit, in both versions of control groups. They have no number without a limit.
_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


@dataclass(frozen=True, slots=True)
class Access:
    """The passwords of both users, and the default database of researchers."""

    password: str
    researcher_password: str
    database: str


def configured_port(folder: Path) -> int | None:
    """The last HTTP port of the server in this folder; None if there was none."""
    try:
        match = _HTTP_PORT.search((folder / "config.xml").read_text("utf-8"))
    except OSError:
        match = None
    return int(match[1]) if match else None


def write_configuration(folder: Path, port: int, access: Access) -> None:
    """Write the configuration files that the server reads at its start. `port` is for HTTP."""
    config = _template("config.xml").format(http=port, tcp=native_port(port), kept=KEPT_FREE)
    # The server looks for both names in its working directory.
    for name in ("config.xml", "clickhouse-local.xml"):
        _replace(folder / name, config)
    # Half of the server's limit.
    fixed = fixed_settings(_memory() // 4)
    users = _template("users.xml").format(
        user=USER,
        password=_digest(access.password),
        researcher=RESEARCHER,
        grants="\n                ".join(f"<query>{grant}</query>" for grant in researcher_grants("*.*")),
        limits="".join(f"<{name}>{value}</{name}>" for name, value in fixed.items() if value is not None),
        fixed="".join(f"<{name}><readonly/></{name}>" for name in fixed),
        researcher_password=_digest(access.researcher_password),
        database=access.database,
        threads=max(_processors() // 2, 1),
        seconds=_QUERY_SECONDS,
        parameter=_PARAMETER_BYTES,
    )
    _replace(folder / "users.xml", users)


def _template(name: str) -> str:
    """A file of this package, with {placeholders}."""
    return (files("analytics_service.embedded") / name).read_text("utf-8")


def _replace(path: Path, content: str) -> None:
    """Write a file if its content has changed."""
    if path.exists() and path.read_bytes() == content.encode():
        return
    with NewFile(path) as new:
        new.file.write(content.encode())
        new.keep()


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def _memory() -> int:
    """Bytes of memory of this machine or container."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for limit in _LIMITS:
        with suppress(OSError, ValueError):
            total = min(total, int(limit.read_text("ascii")))
    return total


def _digest(password: str) -> str:
    return hashlib.sha256(password.encode()).hexdigest()
