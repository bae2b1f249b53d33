"""`keys`: manage the file of API keys."""

from pathlib import Path

import click

from analytics_service.cli.context import load_settings
from analytics_service.errors import SettingError
from analytics_service.http.api_keys import add_key, read_keys, remove_key


def _key_file(context: click.Context, option: click.Parameter, path: Path | None) -> Path:
    if (path := path or load_settings().api_keys_file) is None:
        raise SettingError("Name the file of API keys with --file or ANALYTICS_API_KEYS_FILE.")
    return path


_HELP = "File of the keys.  [default: ANALYTICS_API_KEYS_FILE]"
_FILE = click.option("--file", type=click.Path(path_type=Path), callback=_key_file, help=_HELP)


@click.group()
def keys() -> None:
    """Make, list and remove API keys: `analytics-service keys add alice --file keys.txt`.

    The service requires keys if ANALYTICS_API_KEYS_FILE is set. The file has only digests of keys. The service reads it
    at its start and at SIGHUP.
    """


@keys.command("add")
@click.argument("name")
@_FILE
def keys_add(name: str, file: Path) -> None:
    """Make a key and print it once: `analytics-service keys add alice`."""
    click.echo(add_key(file, name))


@keys.command("list")
@_FILE
def keys_list(file: Path) -> None:
    """List the names of all keys: `analytics-service keys list`."""
    click.echo("".join(f"{name}\n" for name in read_keys(file).values()), nl=False)


@keys.command("remove")
@click.argument("name")
@_FILE
def keys_remove(name: str, file: Path) -> None:
    """Remove a key: `analytics-service keys remove alice`."""
    remove_key(file, name)
    click.echo(f"Removed {name} from {file}.")
