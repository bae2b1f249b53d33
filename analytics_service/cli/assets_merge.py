"""`assets merge`: an asset that is there twice becomes one."""

from typing import Any

import click

from analytics_service.cli.context import load_settings, open_store, open_store_to_read, patient, store_location
from analytics_service.cli.options import data_dir_option
from analytics_service.cli.signals import explaining_stop
from analytics_service.errors import AssetRefused
from analytics_service.store.asset_merge import merge_of


@click.command("merge")
@click.argument("old")
@click.argument("new")
@click.option("--dry-run", is_flag=True, help="Say what would change; stop there.")
@data_dir_option
def merge(old: str, new: str, dry_run: bool, **overrides: Any) -> None:
    """Make an asset that is there twice one: OLD becomes NEW.

    Both are ids. OLD has histories and events only, such as files brought. They become those of NEW, which keeps its
    own observations where both have one at the same second; loans and liquidations are added up. Then OLD is gone, and
    a symbol that both had means NEW. May be interrupted and run again: it continues where it stopped. Example:

    \b
        analytics-service assets merge 'native;WETH' 'token;0xc02aaa39b223fe8d0a0e5c4f27ead9083c756cc2' --dry-run
    """
    settings = patient(load_settings(**overrides))
    with open_store_to_read(settings) if dry_run else open_store(settings) as store:
        if store is None:
            raise AssetRefused(f"There is nothing in {store_location(settings)}.")
        wanted = merge_of(store, old, new)
        click.echo(f"{wanted.old.id} ({wanted.old.symbol}) becomes {wanted.new.id} ({wanted.new.symbol}):")
        for part in wanted.parts():
            same = f", {part.same:,} of them at a second at which NEW has its own" if part.same else ""
            click.echo(f"  {part.name}: {part.rows:,}{same}")
        if not dry_run:
            with explaining_stop("The merge was stopped. When it is run again, it continues where it was."):
                wanted.write(click.echo)
    click.echo("Nothing was written." if dry_run else f"{wanted.old.id} is gone.")
