"""`example`: files to start from, for systemd, nginx, Prometheus and Grafana."""

import sys
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import click

from analytics_service.config.settings import table

_ENV = "env"
_FILES = {
    "grafana": "grafana.json",
    "nginx": "nginx.conf",
    "prometheus-rules": "prometheus-rules.yml",
    "source-views": "source-views.sql",
    "systemd": "systemd.service",
    "systemd-jobs": "systemd-jobs.service",
}
# Placeholder in the files for the absolute path of this program.
_PROGRAM = "@program@"
# The settings file is for the systemd units, whose data is not in the folder of the user who prints the file.
_UNIT_DEFAULTS = {"data_dir": "/var/lib/analytics-service"}


@click.command()
@click.argument("name", type=click.Choice(sorted([*_FILES, _ENV])))
def example(name: str) -> None:
    """Print a file to start from.

    `systemd` is a unit for `up` or `serve`, `systemd-jobs` one for `jobs run`, and `env` the settings file of both.
    `nginx` is a reverse proxy, `prometheus-rules` has alerts, `grafana` is a dashboard. Example:

    \b
        analytics-service example nginx > /etc/nginx/conf.d/analytics-service.conf
    """
    click.echo("\n".join(_settings_file()) if name == _ENV else _packaged(_FILES[name]), nl=name == _ENV)


def _packaged(file: str) -> str:
    """A file of the package, with the path of this program in it."""
    return (
        (resources.files("analytics_service.cli") / "examples" / file).read_text("utf-8").replace(_PROGRAM, _program())
    )


def _program() -> str:
    """The command that starts this program from any folder."""
    started = Path(sys.argv[0]).absolute()
    return f"{sys.executable} -m analytics_service.cli" if started.suffix == ".py" else str(started)


def _settings_file() -> Iterator[str]:
    """Every setting, commented out, with its default under systemd."""
    yield "# /etc/analytics-service.env"
    yield "# Settings of analytics-service. Remove the # in front of those that you change, and keep this file private."
    for row in table():
        yield f"\n# {row.help}\n#{row.variable}={_UNIT_DEFAULTS.get(row.name, row.default) or ''}"
