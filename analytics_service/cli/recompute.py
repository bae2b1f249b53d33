"""`jobs recompute`, and the hint to run it after an import of prices."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import click

from analytics_service.cli.context import load_settings, open_store, waiting_for_store
from analytics_service.cli.options import TIMES, data_dir_option, past_end, require_range, time_option
from analytics_service.cli.signals import explaining_stop
from analytics_service.clickhouse.connection import Store
from analytics_service.errors import Lost
from analytics_service.history.times import Edge
from analytics_service.market.instants import MINUTE, format_instant, from_unix, unix_second
from analytics_service.store.datasets.histories import names_of
from analytics_service.store.datasets.observations import read_next_prices
from analytics_service.store.ledger import read_ledger
from jobs.recompute import DATASETS, BackfillUnit, day_by_day, recompute, seconds_for


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
    click.echo(f"To recompute: {counts}, in about {_duration(seconds_for(store, units))}.")
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


def dependent_units(store: Store, spans: Mapping[str, tuple[int, int]]) -> list[BackfillUnit]:
    """The snapshots that new prices affect: from an asset's first new price until its next stored price. `spans` has
    the first and last unix second of new prices by asset."""
    next_prices = read_next_prices(store, {asset: last for asset, (_, last) in spans.items()})
    if not next_prices:
        return []
    start = min(spans[asset][0] for asset in next_prices)
    end = max(second or unix_second(datetime.now(UTC)) for second in next_prices.values())
    return day_by_day(store, ("markets", "positions"), from_unix(start), from_unix(end))


def suggest_recompute(units: Sequence[BackfillUnit]) -> None:
    """Print how to recompute snapshots that new prices affect, if there are any."""
    if not units:
        return
    start = format_instant(min(unit.instants[0] for unit in units))
    end = format_instant(max(unit.instants[-1] for unit in units))
    click.echo(
        f"These prices affect stored snapshots. Recompute them: `analytics-service jobs recompute --start {start} "
        f"--end {end}`."
    )


def _duration(seconds: float) -> str:
    return f"{seconds / MINUTE:,.0f} min" if seconds > 90 else f"{seconds:.0f} s"
