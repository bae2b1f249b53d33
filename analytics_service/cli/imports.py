"""`import`: history from files."""

from pathlib import Path

import click

from analytics_service.cli.context import load_settings, open_store, store_location
from analytics_service.cli.event_imports import import_events_command
from analytics_service.cli.history_imports import history_command
from analytics_service.cli.options import data_dir_option
from analytics_service.importing.assets import define_assets
from analytics_service.market.instants import instant, shown
from analytics_service.market.misfits import listed
from analytics_service.store.datasets.histories import HISTORIES
from analytics_service.store.ledger import first_moment, read_state


@click.group("import")
def import_group() -> None:
    """Bring in history from files: one history, events of addresses, or descriptions of assets.

    Files have the shape that the README of the commands states; recipes turn what people have into it. Example:

    \b
        analytics-service import price prices.csv --asset ETH --new-assets --dry-run
    """


@import_group.command("assets")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@data_dir_option
def import_assets_command(file: Path, data_dir: Path | None) -> None:
    """Describe assets, also those that an import made of their symbols.

    FILE is CSV with the columns symbol, address or asset_id (such as native;uatom), decimals, and perhaps name. Where a
    source describes the same assets, its next snapshot of prices does so again. Example:

    \b
        analytics-service import assets assets.csv
    """
    settings = load_settings(data_dir=data_dir)
    with open_store(settings) as store:
        changed, corrected = define_assets(store, file)
        first, head = (first_moment(store, "markets"), read_state(store, "markets")) if corrected else (None, None)
    click.echo(f"{changed:,} assets described anew in {store_location(settings)}.")
    if first is not None and head is not None:
        span = f"--start {shown(instant(first))} --end {shown(instant(head.newest))}"
        click.echo(
            f"The decimals of {listed(corrected)} are others now. `analytics-service jobs recompute {span}` computes "
            "again what was stored with them, and `analytics-service jobs backfill all --again "
            f"{span}` asks the source for what was left out because of them."
        )


import_group.add_command(import_events_command)
for _history in HISTORIES:
    import_group.add_command(history_command(_history))
