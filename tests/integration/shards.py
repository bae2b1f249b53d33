"""Three servers as the shards of a cluster, and a store over them.

The embedded ClickHouse replicates nothing and refuses ON CLUSTER. So a statement for all servers is sent to each one,
and a table with a copy on every server is a Distributed one whose INSERTs go to all of these copies.
"""

import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from analytics_service.clickhouse.cluster import SPLIT
from analytics_service.clickhouse.connection import Store
from analytics_service.clickhouse.running import native_port
from analytics_service.config.settings import Settings
from analytics_service.embedded.configuration import USER, Access, write_configuration
from tests import clickhouse
from tests.processes import free_port, until

CLUSTER = "main"
# The first two servers, before a third was added.
SMALLER = "smaller"
_PASSWORD = "p" * 43
_SERVERS = 3
_COPIES = "copies"
_GRANTS = "<query>GRANT REMOTE ON *.*</query><query>GRANT TABLE ENGINE ON Distributed</query>"
_ON_CLUSTER = f" ON CLUSTER '{CLUSTER}'"
_EVERYWHERE = re.compile(r"'/clickhouse/tables/{uuid}/everywhere', '{shard}-{replica}'(, )?")
_CREATE = re.compile(r"(CREATE TABLE IF NOT EXISTS) (\w+)(.*)", re.DOTALL)
_NAME = re.compile(r"(?<![\w`])[a-z]\w+(?![\w`])")


class Shard:
    """A server of the cluster."""

    def __init__(self, folder: Path, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.host = f"127.0.0.1:{native_port(port)}"
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the server, which may take seconds to answer."""
        command = [sys.executable, "-m", "analytics_service.embedded.child", str(self._folder)]
        with (self._folder / "start.log").open("wb") as output:
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=output, stderr=output)

    def stop(self) -> None:
        """Stop the server."""
        if self._process is not None:
            self._process.communicate()
            self._process = None

    @contextmanager
    def paused(self) -> Iterator[None]:
        """The server hangs during the block: it accepts connections, and answers nothing."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    @contextmanager
    def killed(self) -> Iterator[None]:
        """The server is gone during the block."""
        assert self._process is not None
        self._process.kill()
        self.stop()
        try:
            yield
        finally:
            self.start()

    def answers(self) -> bool:
        """Whether the server answers."""
        try:
            with urllib.request.urlopen(f"{self.url}/ping") as answer:  # noqa: S310
                return bool(answer.status == 200)
        except OSError:
            return False


class ShardedStore(Store):
    """A store over the shards, reached by the first."""

    def __init__(self, settings: Settings, shards: list[Shard]) -> None:
        super().__init__(settings)
        self._shards = shards

    def command(self, statement: str, *, in_database: bool = True) -> None:
        """Execute a statement of the layout without replication."""
        statement = statement.replace(f" ON CLUSTER '{SMALLER}'", _ON_CLUSTER)
        for each in _without_copies(statement, self.database):
            if _ON_CLUSTER not in each:
                super().command(each, in_database=in_database)
                continue
            for shard in self._shards:
                database = self.database if in_database else "default"
                named = replace(self._settings, clickhouse_url=shard.url, clickhouse_database=database)
                with clickhouse.client(named) as own:
                    own.command(each.replace(_ON_CLUSTER, ""))


@contextmanager
def running(folder: Path) -> Iterator[list[Shard]]:
    """The running servers."""
    ports = [free_port() for _ in range(_SERVERS)]
    with ExitStack() as stack:
        shards = []
        for index, own in enumerate(ports):
            server = folder / str(index)
            server.mkdir(mode=0o700, parents=True)
            write_configuration(server, own, Access(_PASSWORD, _PASSWORD, "analytics"))
            for name in ("config.xml", "clickhouse-local.xml"):
                _insert(server / name, f"<remote_servers>{_clusters(ports)}</remote_servers>\n</clickhouse>")
            _insert(server / "users.xml", f"{_GRANTS}\n<query>GRANT BACKUP ON *.*</query>")
            shards.append(Shard(server, own))
            stack.callback(shards[-1].stop)
            shards[-1].start()
        for shard in shards:
            until(shard.answers)
        yield shards


def settings_of(shards: list[Shard], **others: str) -> Settings:
    """Settings that name the cluster by its first server."""
    return Settings(
        clickhouse_url=shards[0].url,
        clickhouse_user=USER,
        clickhouse_password=_PASSWORD,
        **{"clickhouse_cluster": CLUSTER, **others},
    )


def _clusters(ports: list[int]) -> str:
    """The shards, and all servers as replicas of one, each of which is sent every row."""
    login = f"<host>127.0.0.1</host><user>{USER}</user><password>{_PASSWORD}</password>"
    replicas = [f"<replica>{login}<port>{native_port(own)}</port></replica>" for own in ports]
    shards = [f"<shard>{replica}</shard>" for replica in replicas]
    smaller = f"<{SMALLER}>{''.join(shards[:2])}</{SMALLER}>"
    return f"{smaller}<{CLUSTER}>{''.join(shards)}</{CLUSTER}><{_COPIES}><shard>{''.join(replicas)}</shard></{_COPIES}>"


def _insert(path: Path, last: str) -> None:
    """Have text stand in place of its own last line."""
    end = last.rpartition("\n")[2]
    text = path.read_text("utf-8")
    assert end in text
    path.write_text(text.replace(end, last), "utf-8")


def _without_copies(statement: str, database: str) -> list[str]:
    code = statement.replace("ENGINE = Replicated", "ENGINE = ")
    code = code.removesuffix("\n")
    if match := re.fullmatch(r"(ALTER TABLE|DELETE FROM) (\w+) (UPDATE .*|WHERE .*)", code):
        return [code if _is_split(match[2]) else f"{match[1]} {_copy(match[2])}{_ON_CLUSTER} {match[3]}"]
    if match := re.fullmatch(r"ALTER TABLE (\w+)(\s.*)", code, re.DOTALL):
        change = match[2].replace(_ON_CLUSTER, "")
        if _is_split(match[1]):
            return [f"ALTER TABLE {match[1]}{_ON_CLUSTER}{change}"]
        # A Distributed table has no order.
        columns = re.sub(r",\s*MODIFY ORDER BY .*", "", change)
        changes = {_copy(match[1]): change, match[1]: columns}
        return [f"ALTER TABLE {table}{_ON_CLUSTER}{own}" for table, own in changes.items()]
    if match := re.fullmatch(r"(DROP TABLE IF EXISTS)( .*)( ON CLUSTER.*)", code):
        names = _NAME.sub(lambda own: own[0] if _is_split(own[0]) else f"{own[0]}, {_copy(own[0])}", match[2])
        return [f"{match[1]}{names}{match[3]}"]
    match = _CREATE.fullmatch(code)
    if not match or _is_split(match[2]):
        return [code]
    create, name, rest = match.groups()
    definition = re.sub(rf"(?<={_ON_CLUSTER} AS )\w+\Z", lambda table: _copy(table[0]), _EVERYWHERE.sub("", rest))
    comment = re.search(r"\nCOMMENT '[^\n]+'\Z", code)
    distributed = f"ENGINE = Distributed('{_COPIES}', '{database}', '{_copy(name)}')"
    return [
        f"{create} {_copy(name)}{definition}",
        f"{create} {name}{_ON_CLUSTER} AS {_copy(name)} {distributed}{comment[0] if comment else ''}",
    ]


def _is_split(table: str) -> bool:
    return table.removesuffix("_local").partition("_staging_")[0] in SPLIT


def _copy(table: str) -> str:
    return f"{table}_copy"
