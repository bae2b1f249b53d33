"""`jobs recompute`, and the hint to run it after new prices."""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import click

from analytics_service.cli.context import follow_up, load_settings, open_store, waiting_for_store
from analytics_service.cli.options import TIMES, data_dir_option, past_end, require_range, time_option
from analytics_service.cli.signals import explaining_stop
from analytics_service.clickhouse.connection import Store
from analytics_service.errors import Lost
from analytics_service.history.times import Edge
from analytics_service.market.instants import format_instant, from_unix, unix_second
from analytics_service.store.datasets.histories import names_of
from analytics_service.store.ledger import read_ledger
from jobs.recompute import DATASETS, BackfillUnit, day_by_day, recompute


@click.command("recompute", epilog=TIMES)
@click.argument("dataset", type=click.Choice(DATASETS), required=False)
@time_option(Edge.START, "First second.", required=True)
@time_option(Edge.END, "Last second, inclusive.", required=True)
@click.option("--dry-run", is_flag=True, help="Show how much would be recomputed; write nothing.")
@data_dir_option
def jobs_recompute(dataset: str | None, start: datetime, end: datetime, dry_run: bool, **overrides: Any) -> None:
    """Recompute values that follow from stored prices, markets, positions and events.

    Recomputes USD sums and the prices stored with markets, the risk of positions, and the sums of loans and
    liquidations, for one DATASET or for all. Sums of loans are cumulative, so all later sums change, too. Run this
    after correcting prices. Only values that differ are written. It can be stopped and run again. Example:

    \b
        analytics-service jobs recompute --start 2026-03-01 --end 2026-03-05 --dry-run
    """
    require_range(start, end)
    end = past_end(end, datetime.now(UTC))
    with open_store(waiting_for_store(load_settings(**overrides))) as store:
        _require_inputs(store, start, end)
        recompute_units(store, day_by_day(store, [dataset] if dataset else DATASETS, start, end), dry_run=dry_run)


def _require_inputs(store: Store, start: datetime, end: datetime) -> None:
    """Lost if the store has lost rows of the range that cannot be recomputed (rule 8.19, losses)."""
    for dataset, losses in read_ledger(store).losses.items():
        computed = names_of(dataset) if dataset in DATASETS else ()
        for loss in losses:
            if dataset and loss.what not in computed and loss.overlaps(unix_second(start), unix_second(end)):
                raise Lost(f"The store has lost rows that this needs: {loss}. See `analytics-service status` first.")


def recompute_units(store: Store, units: Sequence[BackfillUnit], *, dry_run: bool = False) -> None:
    """Recompute snapshots. Prints the cost first and the result afterwards."""
    if not units:
        click.echo("There are no snapshots to recompute in this range.")
        return
    planned: Counter[str] = Counter()
    for unit in units:
        planned[unit.dataset] += len(unit.instants) or 1
    sums = {"loans": "the sums of loans from then on"}
    counts = ", ".join(sums.get(dataset, f"{count:,} snapshots of {dataset}") for dataset, count in planned.items())
    click.echo(f"To recompute: {counts}.")
    if dry_run:
        return
    changed: Counter[str] = Counter()
    with click.progressbar(length=planned.total(), label="Recomputing") as bar:
        for unit in units:
            first = format_instant(unit.first_instant)
            outcome = f"Stopped. Everything before {first} is done; continue from there."
            with explaining_stop(outcome, begun=unit is not units[0]):
                changed[unit.dataset] += recompute(store, unit)
            bar.update(len(unit.instants) or 1)
    for dataset in planned:
        rows = "observations" if dataset in sums else "snapshots"
        click.echo(f"{dataset}: {changed[dataset]:,} {rows} have changed.")


def affected_end(store: Store, last: int) -> datetime:
    """The exclusive end of the snapshots that a price may affect, given its unix second: a price counts until it is too
    old."""
    return past_end(from_unix(last) + store.price_max_age, datetime.now(UTC))


def suggest_recompute(store: Store, start: int, last: int) -> None:
    """Print how to recompute stored snapshots that new prices from `start` to `last` (unix seconds) may affect."""
    units = day_by_day(store, ("markets", "positions"), from_unix(start), affected_end(store, last))
    if units:
        first, end = (format_instant(pick(at for unit in units for at in unit.instants)) for pick in (min, max))
        command = follow_up(f"jobs recompute --start {first} --end {end}")
        click.echo(f"These prices may affect stored snapshots. Recompute them: `{command}`.")
