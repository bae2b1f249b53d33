"""`keys`: the file of API keys."""

from pathlib import Path

import click

from analytics_service.cli.context import load_settings
from analytics_service.cli.options import value_type
from analytics_service.errors import SettingError
from analytics_service.http.api_keys import add_key, key_name, read_keys, remove_key

_file_option = click.option(
    "--file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File of the keys.  [default: ANALYTICS_API_KEYS_FILE]",
)
_name_argument = click.argument("name", type=value_type(key_name))


@click.group()
def keys() -> None:
    """Make, list and remove API keys.

    The service asks for keys if ANALYTICS_API_KEYS_FILE names their file. It has their digests only, and is read again
    when it has changed. Example:

    \b
        analytics-service keys add alice --file keys.txt
    """


@keys.command("add")
@_name_argument
@_file_option
def keys_add(name: str, file: Path | None) -> None:
    """Make a key called NAME, and print it.

    It cannot be shown again. Example:

    \b
        analytics-service keys add alice
    """
    click.echo(add_key(_key_file(file), name))


@keys.command("list")
@_file_option
def keys_list(file: Path | None) -> None:
    """List the names of all keys.

    \b
        analytics-service keys list
    """
    for name in read_keys(_key_file(file)):
        click.echo(name)


@keys.command("remove")
@_name_argument
@_file_option
def keys_remove(name: str, file: Path | None) -> None:
    """Remove the key called NAME. Requests with it are refused a second later.

    \b
        analytics-service keys remove alice
    """
    path = _key_file(file)
    remove_key(path, name)
    click.echo(f"Removed {name} from {path}.")


def _key_file(file: Path | None) -> Path:
    path = file or load_settings().api_keys_file
    if path is None:
        raise SettingError("Name the file of API keys with --file or ANALYTICS_API_KEYS_FILE.")
    return path
