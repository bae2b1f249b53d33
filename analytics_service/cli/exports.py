"""`export`: histories and views as files for other programs."""

from collections.abc import Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from analytics_service.cli.context import ProgressBars, load_settings, open_store_to_read, patient, store_location
from analytics_service.cli.options import TIMES, data_dir_option, require_range, time_option
from analytics_service.cli.signals import explaining_stop
from analytics_service.errors import ExportRefused
from analytics_service.exports.folder import ExportFolder
from analytics_service.exports.views import exported_views
from analytics_service.exports.writing import FORMATS, Export, ExportSummary, Selection
from analytics_service.history.times import Edge
from analytics_service.market.instants import EPOCH, instant, unix_second
from analytics_service.market.kinds import FOREVER


@click.command(epilog=TIMES)
@click.argument("what", nargs=-1, required=True)
@click.option(
    "--out", "folder", type=click.Path(path_type=Path), metavar="DIR", required=True, help="Folder for the files."
)
@click.option(
    "--format",
    "suffix",
    type=click.Choice(list(FORMATS)),
    default="parquet",
    show_default=True,
    help="Format of the files.",
)
@time_option(Edge.START, "First second.  [default: that of the data]")
@time_option(Edge.END, "Last second, itself included.  [default: that of the data]")
@data_dir_option
def export(
    what: Sequence[str], folder: Path, suffix: str, start: datetime | None, end: datetime | None, **overrides: Any
) -> None:
    """Write histories and views into files, for other programs or for `import`, while the service runs.

    Each WHAT is a history as in `import` (price, lend-rate, tvl), a view of the database by its name, or all. There is
    a file for each month (UTC) of observed_at or time, such as DIR/price/2026-03.parquet; what has neither is a single
    file, whatever the range.

    May be interrupted and run again: it goes on where it stopped, and later brings DIR up to date. Files whose data
    have not changed stay as they are. DIR/export.json lists the files. Example:

    \b
        analytics-service export price tvl --start 2026-01-01 --out exported
        analytics-service import price exported/price --data-dir other --new-assets
    """
    first, last = start or EPOCH, end or instant(FOREVER - 1)
    require_range(first, last)
    selection = Selection(unix_second(first), min(unix_second(last) + 1, FOREVER), suffix)
    settings = patient(load_settings(**overrides))
    with open_store_to_read(settings) as store, closing(ProgressBars()) as bars:
        if store is None:
            raise ExportRefused(f"There is no data in {store_location(settings)}.")
        views = exported_views(store, what)
        files = Export(store, ExportFolder(folder), selection, bars)
        with explaining_stop(f"The export was stopped. All files in {folder} are whole; the same command goes on."):
            for view in views:
                files.add(view)
    _report(files.summary, folder)


def _report(summary: ExportSummary, folder: Path) -> None:
    written, unchanged = summary.written, summary.files - summary.written.keys()
    size = sum(written.values())
    click.echo(f"Files in {folder}: {len(written):,} written ({size:,} bytes), {len(unchanged):,} unchanged.")
    if summary.empty:
        click.echo(f"No rows: {', '.join(summary.empty)}.")
