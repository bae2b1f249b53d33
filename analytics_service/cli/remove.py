"""`remove`: remove observations or snapshots from the store."""

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from analytics_service.admin.remove import Removal, Removed, count_removed, remove
from analytics_service.cli.context import ProgressBars, filled_store, follow_up, load_settings, waiting_for_store
from analytics_service.cli.options import TIMES, data_dir_option, require_range, time_option
from analytics_service.cli.recompute import affected_end
from analytics_service.cli.signals import explaining_stop
from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.errors import EntityNotFound, ParameterInvalid, UserError
from analytics_service.history.times import Edge
from analytics_service.market.assets import resolve_id
from analytics_service.market.instants import format_instant, from_unix, unix_second
from analytics_service.market.kinds import FOREVER
from analytics_service.store.datasets.assets import read_assets
from analytics_service.store.datasets.histories import HISTORIES, PRICES
from analytics_service.store.ownership import Owner, read_owner, remembered_source, simulated_spec
from analytics_service.store.schema import TABLES
from jobs.registry import JOBS

_HISTORIES = {history.slug: history for history in HISTORIES}
# The values that depend on a history or dataset, in words.
_FROM_PRICES = "USD sums, prices stored with markets, risk and loans"
_DEPENDENTS = {"price": _FROM_PRICES, "prices": _FROM_PRICES, "markets": "risk", "positions": "risk"}
_STOPPED = (
    "The removal was stopped. Either nothing was removed, or the service or the next command completes it. Files that "
    "were written stay."
)


@click.command("remove", epilog=TIMES)
@click.argument("name", type=click.Choice([*_HISTORIES, *TABLES]), metavar="NAME")
@time_option(Edge.START, "First second.", required=True)
@time_option(Edge.END, "Last second, inclusive.  [default: all later rows]")
@click.option("--symbol", "symbols", multiple=True, metavar="SYMBOL", help="Only this asset, by symbol or id.")
@click.option("--dry-run", is_flag=True, help="Show what would be removed; write nothing.")
@click.option(
    "--into",
    "folder",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    metavar="DIR",
    default=".",
    help="Folder for the files of removed observations.  [default: the working directory]",
)
@data_dir_option
def remove_command(
    name: str,
    start: datetime,
    end: datetime | None,
    symbols: tuple[str, ...],
    dry_run: bool,
    folder: Path,
    **overrides: Any,
) -> None:
    """Remove wrong data: observations of a history, or whole snapshots.

    NAME is a history as in `import` (price, lend-rate, tvl), or a dataset: prices, rates, markets, loans, ptoken,
    positions, routes. Snapshots are removed with their observations. Snapshots of positions and loans can be removed
    only from --start to the newest.

    Observations are first written into CSV files, which `import` reads back exactly, except simulated ones. The
    service keeps running, and shows all of the removal or none. Example:

    \b
        analytics-service remove price --symbol ATOM --start 2026-03-01 --end 2026-03-02 --dry-run
    """
    if end is not None:
        require_range(start, end)
    history = _HISTORIES.get(name)
    if symbols and (history is None or history.by_asset is None):
        raise click.UsageError(f"--symbol is only for histories of assets, and {name} is not one of them.")
    settings = waiting_for_store(load_settings(**overrides))
    with filled_store(settings, dry_run=dry_run) as store, closing(ProgressBars()) as bars:
        until = FOREVER if end is None else min(unix_second(end) + 1, FOREVER)
        removal = Removal(
            history.dataset if history else name, history, unix_second(start), until, _ids(store, symbols)
        )
        if dry_run:
            removed = count_removed(store, removal)
        else:
            with explaining_stop(_STOPPED):
                removed = remove(store, removal, folder, bars)
        end_of_effect = removed.last + 1
        if removal.dataset == PRICES.dataset:
            end_of_effect = unix_second(affected_end(store, removed.last))
        owner = read_owner(store)
        bars.close()
    click.echo(_report(removal, removed, dry_run=dry_run))
    for line in remedies(removal, removed, end_of_effect, settings, owner):
        click.echo(line)


def _ids(store: Store, symbols: tuple[str, ...]) -> list[str]:
    """The ids of the assets that --symbol names. UserError for a symbol of no asset, or of several."""
    stored = read_assets(store) if symbols else {}
    try:
        return [resolve_id(name, stored, "--symbol") for name in symbols]
    except (EntityNotFound, ParameterInvalid) as error:
        raise UserError(str(error)) from None


def _report(removal: Removal, removed: Removed, *, dry_run: bool) -> str:
    first, last = format_instant(from_unix(removed.first)), format_instant(from_unix(removed.last))
    counts = [f"{number:,} observations of {history.slug}" for history, number in removed.observations.items()]
    counts = [f"{removed.snapshots:,} snapshots of {removal.name}", *counts] if removal.history is None else counts
    return f"{'Would remove' if dry_run else 'Removed'} {', '.join(counts)}, from {first} to {last}."


def remedies(removal: Removal, removed: Removed, end_of_effect: int, settings: Settings, owner: Owner) -> Iterator[str]:
    """The commands that bring removed data back, and those that compute what depends on it. A removal that starts in
    the future needs no snapshots."""
    if removed.files and simulated_spec(owner.name) is None:
        imports = [follow_up(f"import {history.slug} {path}") for history, path in removed.files.items()]
        yield f"To restore the observations: {'; '.join(imports)}"
    start, last, end = (format_instant(from_unix(at)) for at in (removed.first, removed.last, end_of_effect - 1))
    if removed.first > unix_second(datetime.now(UTC)):
        return
    job = JOBS[removal.dataset]
    backfill = f"jobs backfill {job.name} --start {start} --end {last}"
    has_source = remembered_source(owner) is not None
    if has_source and removal.history is None:
        yield f"To take the snapshots again: {follow_up(f'{backfill} --every {job.interval(settings)}s')}"
    elif has_source and removal.dataset != "positions":
        yield f"To take the observations from the source again: {follow_up(f'{backfill} --again')}"
    if dependents := _DEPENDENTS.get(removal.name):
        yield f"Finally, to recompute {dependents}: {follow_up(f'jobs recompute --start {start} --end {end}')}"
