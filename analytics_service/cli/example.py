"""`example` prints files to start from; `settings` lists every setting with its value."""

import os
import sys
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path

import click

from analytics_service.cli.context import load_settings
from analytics_service.config.settings import table, without_credentials
from analytics_service.sources.sql.views import VIEWS

_ENV, _RECIPES = "env", "recipes"
_FILES = {
    "cluster": "cluster.sql",
    "grafana": "grafana.json",
    "grafana-alerts": "grafana-alerts.yml",
    "grafana-http": "grafana-http.json",
    "haproxy": "haproxy.cfg",
    "nginx": "nginx.conf",
    "prometheus-rules": "prometheus-rules.yml",
    "source-views": "source-views.sql",
    "systemd": "systemd.service",
    "systemd-jobs": "systemd-jobs.service",
}
# Examples of several files.
_FOLDERS = {
    "docker": ("Dockerfile", "compose.yaml"),
    "source": ("pyproject.toml", "my_source/__init__.py", "my_source/prices.csv", "test_my_source.py"),
}
# Placeholder in the files for the absolute path of this program.
_PROGRAM = "@program@"
# The settings file is for the systemd units, whose data is not in the home of the user who prints the file.
_UNIT_DEFAULTS = {"data_dir": "/var/lib/analytics-service"}


@click.command()
@click.argument("name", type=click.Choice(sorted([*_FILES, *_FOLDERS, _ENV, _RECIPES])))
@click.option(
    "--into",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write the files into this folder instead of printing them. No file is replaced.",
)
def example(name: str, folder: Path | None) -> None:
    """Print a file to start from.

    \b
    cluster           SQL that copies a store into a cluster with more shards
    docker            an image of `up` with a compose file
    env               the settings file of the systemd units
    grafana           a dashboard of the protocol and the jobs, over SQL
    grafana-alerts    alerts on the protocol and the jobs, over SQL
    grafana-http      a dashboard of the HTTP service, over Prometheus
    haproxy           puts several ClickHouse servers behind one address
    nginx             a reverse proxy
    prometheus-rules  alerts on the service
    recipes           how to convert other files into the shape that `import` reads
    source            a Python package with a source of snapshots
    source-views      SQL of a source that reads ClickHouse
    systemd           a unit for `up` or `serve`
    systemd-jobs      a unit for `jobs run`

    \b
    Examples:
        analytics-service example nginx > /etc/nginx/conf.d/analytics-service.conf
        analytics-service example source --into my-source
    """
    files = _files(name)
    if folder is not None:
        _write(folder, files)
        return
    if name in _FOLDERS:
        raise click.UsageError(f"{name} has several files. Name a folder for them with --into.")
    for text in files.values():
        click.echo(text, nl=False)


def _files(name: str) -> Mapping[str, str]:
    """The texts of files, by path."""
    if name == _ENV:
        return {"analytics-service.env": "\n".join(_settings_file()) + "\n"}
    if name == _RECIPES:
        return {"RECIPES.md": (resources.files("analytics_service.importing") / "RECIPES.md").read_text("utf-8")}
    return (
        {path: _packaged(f"{name}/{path}") for path in _FOLDERS[name]}
        if name in _FOLDERS
        else {_FILES[name]: _packaged(_FILES[name])}
    )


def _write(folder: Path, files: Mapping[str, str]) -> None:
    """Write files into a folder. UsageError if one exists."""
    for path in files:
        if (folder / path).exists():
            raise click.UsageError(f"{folder / path} exists and is not replaced. Name another folder.")
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, "utf-8")
        click.echo(folder / path)


def _packaged(file: str) -> str:
    """A file of the package, with its placeholders for this program's path and the columns of views filled in."""
    text = (resources.files("analytics_service.cli") / "examples" / file).read_text("utf-8")
    for view in VIEWS.values():
        text = text.replace(f"@{view.name}@", view.ddl())
    return text.replace(_PROGRAM, _program())


def _program() -> str:
    """The command that starts this program from any folder."""
    started = Path(sys.argv[0]).absolute()
    return f"{sys.executable} -m analytics_service.cli" if started.suffix == ".py" else str(started)


def _settings_file() -> Iterator[str]:
    """Lines with every setting, commented out, and its default under systemd."""
    yield "# /etc/analytics-service.env"
    yield "# Settings of analytics-service. Remove the # before each setting that you change. Keep this file private."
    for row in table():
        yield f"\n# {row.help}\n#{row.variable}={_UNIT_DEFAULTS.get(row.name, row.default) or ''}"


@click.command()
def settings() -> None:
    """List all settings: environment variable, current value, default and meaning.

    Command options override settings. Example:

    \b
        ANALYTICS_TZ=Europe/London analytics-service settings
    """
    for row in table():
        value = without_credentials(os.environ.get(row.variable, row.default or ""))
        shown = "(hidden)" if row.secret and value else value or "unset"
        click.echo(f"{row.variable}={shown}\n    {row.help} Default: {row.default or 'unset'}.\n")
    # An error comes last, below the list that its message refers to.
    load_settings()
