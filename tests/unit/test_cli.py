"""The command line: what it accepts, and what it says about everything else."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from analytics_service.admin.remove import Removal, Removed
from analytics_service.cli.main import cli
from analytics_service.cli.options import parse_duration, time_option
from analytics_service.cli.remove import remedies
from analytics_service.config.settings import Settings, table
from analytics_service.history.times import Edge
from analytics_service.http.api_keys import digest, read_keys
from analytics_service.store.datasets.histories import PRICES
from analytics_service.store.ownership import MADE_UP, Owner
from tests.processes import free_port


def run(*arguments: str, **environ: str) -> Result:
    """Run a command whose settings come from `environ` only."""
    cleared: dict[str, str | None] = {row.variable: None for row in table()}
    return CliRunner().invoke(cli, arguments, env=cleared | environ, prog_name="analytics-service")


def commands(
    command: click.Command = cli, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command and group, with the words that call it."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None
            yield from commands(child, (*path, name))


def test_the_help_of_every_command_teaches_with_an_example() -> None:
    without = []
    for path, _ in commands():
        result = run(*path, "--help")
        words = " ".join(["analytics-service", *path])
        if result.exit_code or not any(words in line and "Usage:" not in line for line in result.output.splitlines()):
            without.append(words)
    assert without == []


def test_every_option_says_what_it_does() -> None:
    options = [
        (path, option) for path, command in commands() for option in command.params if isinstance(option, click.Option)
    ]
    assert [(path, option.name) for path, option in options if not option.help] == []


@pytest.mark.parametrize(
    ("zone", "start", "end"),
    [
        ("UTC", datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 3, 2, tzinfo=UTC)),
        ("Asia/Kathmandu", datetime(2026, 2, 28, 18, 15, tzinfo=UTC), datetime(2026, 3, 1, 18, 15, tzinfo=UTC)),
    ],
)
def test_a_date_is_a_whole_day_of_the_services_zone_as_in_the_api(zone: str, start: datetime, end: datetime) -> None:
    got: list[datetime] = []

    @click.command()
    @time_option(Edge.START, "")
    @time_option(Edge.END, "")
    @time_option(Edge.AT, "")
    def command(**given: datetime) -> None:
        got.extend(given[edge] for edge in Edge)

    arguments = [f"--{edge}=2026-03-01" for edge in Edge]
    CliRunner().invoke(command, arguments, env={"ANALYTICS_TZ": zone, "TZ": "America/New_York"}, catch_exceptions=False)
    last = end - timedelta(seconds=1)
    assert got == [start, last, last]


def test_a_duration_is_a_number_and_a_unit() -> None:
    seconds = [parse_duration(text).total_seconds() for text in ("30s", "15min", "1h", "7d")]
    assert seconds == [30, 900, 3_600, 604_800]
    for text in ("1", "0s", "-1h", "1w", "1h30m"):
        with pytest.raises(ValueError, match="positive whole number followed by s, min, h or d, such as 30s, 15min"):
            parse_duration(text)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nothing"], "No such command 'nothing'"),
        (["up", "--bind", "8000"], "'8000' must be host:port"),
        (["up", "--source", "magic"], "'magic' must be simulated"),
        (["jobs", "once", "weather"], "'weather' is not"),
        (["jobs", "once", "prices", "--at", "noon"], "'--at': 'noon' must be unix seconds, a date"),
        (["jobs", "once", "prices", "--at", "1969-12-31"], "'1969-12-31' must be from 0 to 4294967295 in unix seconds"),
        (["jobs", "backfill", "prices", "--start", "2026-03-01"], "Missing option '--end'"),
        (["jobs", "backfill", "prices", "--start", "2", "--end", "1"], "1970-01-01T00:00:02Z is later than --end 1970"),
        (["export", "price", "--out", "no.csv", "--start", "now", "--end", "now-1d"], "Z is later than --end "),
        (["export", "price", "--out", "price.ndjson"], "must end with .parquet, .csv or .arrow"),
        (["jobs", "once", "prices", "--source", "none"], "no snapshots can be taken"),
        (["import", "price"], "Missing argument 'FILES...'"),
        (["import", "price", "/no/such/file.csv"], "'/no/such/file.csv' does not exist"),
    ],
)
def test_a_call_that_cannot_work_exits_with_2_and_says_why(arguments: list[str], said: str, tmp_path: Path) -> None:
    result = run(*arguments, ANALYTICS_DATA_DIR=str(tmp_path))
    assert result.exit_code == 2
    assert said in result.stderr
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("owner", "advised"),
    [
        (Owner("not simulated"), ["import price p.csv", "jobs recompute"]),
        (Owner("not simulated", "my:source"), ["import price p.csv", "jobs backfill prices", "jobs recompute"]),
        (Owner(f"{MADE_UP}simulated:1", "simulated:1"), ["jobs backfill prices", "jobs recompute"]),
    ],
)
def test_what_was_removed_is_brought_back_by_commands_that_the_store_accepts(owner: Owner, advised: list[str]) -> None:
    """In the data folder of the command. Simulated values are not imported, and without a source none are taken."""
    removed = Removed(0, {PRICES: 1}, 7, 8, {PRICES: Path("p.csv")})

    @click.command()
    @click.option("--data-dir")
    def command(data_dir: str) -> None:
        for line in remedies(Removal("prices", PRICES, 7, 9), removed, 9, Settings(), owner):
            click.echo(line)

    lines = CliRunner().invoke(command, ["--data-dir", "my data"], catch_exceptions=False).output.splitlines()
    assert [text in line for text, line in zip(advised, lines, strict=True)] == [True] * len(advised)
    assert all(line.endswith(" --data-dir 'my data'") for line in lines)


def test_settings_lists_every_setting_but_hides_secrets() -> None:
    secrets = {"ANALYTICS_CLICKHOUSE_PASSWORD": "a secret", "ANALYTICS_UPSTREAM_KEY": "s3cret"}
    environ = {"ANALYTICS_TZ": "Europe/London", **secrets}
    result = run("settings", **environ)
    assert result.exit_code == 0
    for row in table():
        assert f"{row.variable}=" in result.output
        assert row.help in result.output
    assert "ANALYTICS_TZ=Europe/London" in result.output
    assert "Default: UTC." in result.output
    # As it is written, too.
    assert "Default: false." in result.output
    for variable, secret in secrets.items():
        assert f"{variable}=(hidden)" in result.output
        assert secret not in result.output
        assert secret not in repr(Settings.from_environment(secrets))


def test_status_without_a_running_clickhouse_says_how_to_start_one(tmp_path: Path) -> None:
    result = run("status", ANALYTICS_DATA_DIR=str(tmp_path / "none"))
    assert result.exit_code == 1
    assert "analytics-service up" in result.output
    assert not (tmp_path / "none").exists()


REFUSED = "ClickHouse at http://127.0.0.1:1 cannot be reached: connection refused.\n"


def test_an_unreachable_clickhouse_is_one_line_with_the_cause_and_exit_code_1(tmp_path: Path) -> None:
    (tmp_path / "prices.csv").write_text("asset,time,value\ntoken;a,1,1\n")
    for command in (
        ("migrate",),
        ("jobs", "once", "prices", "--source", "simulated"),
        ("import", "price", str(tmp_path / "prices.csv")),
    ):
        result = run(*command, ANALYTICS_CLICKHOUSE_URL="http://127.0.0.1:1")
        assert (result.exit_code, result.stderr) == (1, f"Error: {REFUSED}"), command
    result = run("status", ANALYTICS_CLICKHOUSE_URL="http://127.0.0.1:1")
    assert (result.exit_code, REFUSED in result.output) == (1, True)
    assert "Problem     the store cannot be reached" in result.output


@pytest.mark.parametrize(
    "arguments",
    [
        ("jobs", "once", "prices", "--at", "2090-01-01"),
        ("jobs", "backfill", "prices", "--start", "2090-01-01T23:59:59Z", "--end", "2090-01-02"),
    ],
)
def test_no_snapshot_is_taken_of_a_future_instant(arguments: tuple[str, ...], tmp_path: Path) -> None:
    result = run(*arguments, ANALYTICS_DATA_DIR=str(tmp_path))
    assert result.exit_code == 2
    assert "2090-01-01T23:59:59Z is in the future; now is 20" in result.output
    assert list(tmp_path.iterdir()) == []


def test_keys_are_added_listed_and_removed(tmp_path: Path) -> None:
    file = tmp_path / "keys.txt"
    environ = {"ANALYTICS_API_KEYS_FILE": str(file)}
    added = run("keys", "add", "alice", **environ)
    assert added.exit_code == 0
    assert read_keys(file) == {digest(added.output.strip()): "alice"}
    assert run("keys", "add", "bob", "--file", str(file)).exit_code == 0
    assert run("keys", "list", **environ).output == "alice\nbob\n"
    removed = run("keys", "remove", "alice", **environ)
    assert (removed.exit_code, removed.output) == (0, f"Removed alice from {file}.\n")
    assert run("keys", "list", **environ).output == "bob\n"


@pytest.mark.parametrize("command", ["up", "serve"])
def test_a_service_whose_file_of_keys_is_missing_does_not_start(command: str, tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    missing = str(tmp_path / "keys.txt")
    # The default port for metrics may be taken by a service that runs on this machine.
    free = {"ANALYTICS_METRICS_BIND": "none", "ANALYTICS_API_KEYS_FILE": missing}
    result = run(command, "--bind", f"127.0.0.1:{free_port()}", "--data-dir", data, **free)
    assert (result.exit_code, result.output.count("\n")) == (2, 1)
    assert result.output.startswith(f"Error: The file of API keys {missing} cannot be read")


def test_an_import_shows_what_it_understood_before_it_writes(tmp_path: Path) -> None:
    """Into a folder without data a dry run needs no ClickHouse."""
    (tmp_path / "eth.csv").write_text("time,value,cap\n2015-08-07T00:00:00Z,2.83162,0\n")
    data_dir = tmp_path / "data"
    asked = ("import", "price", str(tmp_path / "eth.csv"), "--data-dir", str(data_dir), "--dry-run", "--new-assets")
    result = run(*asked, "--asset", "ETH")
    assert result.exit_code == 0, result.output
    for line in (
        "Range: 2015-08-07T00:00:00Z to 2015-08-07T00:00:00Z",
        "New assets: native;ETH (ETH)",
        "  2015-08-07T00:00:00Z  2.83162  native;ETH",
        "Read 1 row: 1 value, 0 rejected, 0 without a value.",
    ):
        assert line in result.output.splitlines()
    assert not data_dir.exists()
    refused = run(*asked)
    assert (refused.exit_code, "--asset SYMBOL" in refused.output) == (2, True)


def test_the_embedded_server_has_a_researcher_already(tmp_path: Path) -> None:
    result = run("migrate", "--researcher", "alice", "--data-dir", str(tmp_path))
    assert result.exit_code == 2
    assert "--researcher is for a server of your own, which ANALYTICS_CLICKHOUSE_URL names." in result.output
    assert not any(tmp_path.iterdir())
