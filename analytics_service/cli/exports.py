"""`export`: write the rows of a view into a file."""

from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from analytics_service.admin.export import SUFFIXES, export, find_view
from analytics_service.cli.context import ProgressBars, filled_store, load_settings, waiting_for_store
from analytics_service.cli.options import TIMES, data_dir_option, require_range, time_option
from analytics_service.cli.signals import explaining_stop
from analytics_service.history.times import Edge
from analytics_service.market.instants import EPOCH, from_unix, unix_second
from analytics_service.market.kinds import FOREVER


@click.command("export", epilog=TIMES)
@click.argument("view")
@click.option(
    "--out",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    required=True,
    help="File to write: .parquet, .csv or .arrow. An existing file is replaced.",
)
@time_option(Edge.START, "First second.  [default: all earlier rows]")
@time_option(Edge.END, "Last second, inclusive.  [default: all later rows]")
@data_dir_option
def export_command(view: str, file: Path, start: datetime | None, end: datetime | None, **overrides: Any) -> None:
    """Write a history or view into a file, for other programs or for `import`, while the service runs.

    VIEW is a history as in `import` (price, lend-rate, tvl), or the name of a view of the database; the message about
    an unknown name lists them. --start and --end select by the column observed_at or time, if the view has one. FILE is
    written with all rows, or not at all. Example:

    \b
        analytics-service export price --start 2026-01-01 --out price.parquet
        analytics-service import price price.parquet --data-dir other --new-assets
    """
    if file.suffix not in SUFFIXES:
        raise click.UsageError(f"--out {file} must end with {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}.")
    first, last = start or EPOCH, end or from_unix(FOREVER - 1)
    require_range(first, last)
    span = unix_second(first), min(unix_second(last) + 1, FOREVER)
    settings = waiting_for_store(load_settings(**overrides))
    with (
        filled_store(settings, dry_run=True) as store,
        closing(ProgressBars()) as bars,
        explaining_stop(f"The export was stopped. {file} was not written."),
    ):
        rows = export(store, find_view(store, view), file, span, bars)
    click.echo(f"Wrote {rows:,} rows to {file} ({file.stat().st_size:,} bytes).")
