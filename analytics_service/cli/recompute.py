"""`jobs recompute`, and the same after an import of prices."""

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
@time_option(Edge.END, "Last second, itself included.", required=True)
@click.option("--dry-run", is_flag=True, help="Say how much there is to compute; stop there.")
@data_dir_option
def jobs_recompute(dataset: str | None, start: datetime, end: datetime, dry_run: bool, **overrides: Any) -> None:
    """Compute again what follows from stored prices, markets, positions and events.

    These are sums in USD and the prices kept with markets, the risk of positions, and the sums of loans and
    liquidations: of one DATASET, or of all. Sums of loans are made from those before, so all later ones follow. Run it
    after a correction of prices. What comes out as it is stored is not written. May be stopped and run again. Example:

    \b
        analytics-service jobs recompute --start 2026-03-01 --end 2026-03-05 --dry-run
    """
    require_range(start, end)
    end = past_end(end, datetime.now(UTC))
    with open_store(waiting_for_store(load_settings(**overrides))) as store:
        _require_inputs(store, start, end)
        recompute_units(store, day_by_day(store, [dataset] if dataset else DATASETS, start, end), dry_run=dry_run)


def _require_inputs(store: Store, start: datetime, end: datetime) -> None:
    """Lost if the store has lost rows of the range that are not computed (rule 8.19)."""
    for dataset, losses in read_ledger(store).losses.items():
        computed = names_of(dataset) if dataset in DATASETS else ()
        for loss in losses:
            if dataset and loss.what not in computed and loss.overlaps(unix_second(start), unix_second(end)):
                raise Lost(
                    f"This would be computed without what is lost: {loss}. See `analytics-service status` first."
                )


def recompute_units(store: Store, units: Sequence[BackfillUnit], *, dry_run: bool = False) -> None:
    """Compute snapshots again, and say what it costs before and what came of it after."""
    if not units:
        click.echo("There are no snapshots to compute again in this range.")
        return
    found: Counter[str] = Counter()
    for unit in units:
        found[unit.dataset] += len(unit.instants) or 1
    sums = {"loans": "the sums of loans from then on"}
    counts = ", ".join(sums.get(dataset, f"{count:,} snapshots of {dataset}") for dataset, count in found.items())
    click.echo(f"To compute again: {counts}, in about {_duration(seconds_for(store, units))}.")
    if dry_run:
        return
    changed: Counter[str] = Counter()
    with click.progressbar(length=found.total(), label="Computing") as bar:
        for unit in units:
            first = format_instant(unit.first_instant)
            outcome = f"Stopped. What was before {first} is done; go on from there."
            with explaining_stop(outcome, begun=unit is not units[0]):
                changed[unit.dataset] += recompute(store, unit)
            bar.update(len(unit.instants) or 1)
    for dataset in found:
        rows = "observations" if dataset in sums else "snapshots"
        click.echo(f"{dataset}: {changed[dataset]:,} {rows} have changed.")


def dependent_units(store: Store, spans: Mapping[str, tuple[int, int]]) -> list[BackfillUnit]:
    """The snapshots that follow from new prices, whose first and last unix second is given by asset: from the first of
    an asset until it is priced next."""
    next_prices = read_next_prices(store, {asset: last for asset, (_, last) in spans.items()})
    if not next_prices:
        return []
    start = min(spans[asset][0] for asset in next_prices)
    end = max(second or unix_second(datetime.now(UTC)) for second in next_prices.values())
    return day_by_day(store, ("markets", "positions"), from_unix(start), from_unix(end))


def suggest_recompute(units: Sequence[BackfillUnit]) -> None:
    """Say how to compute again what follows from new prices, if anything does."""
    if not units:
        return
    start = format_instant(min(unit.instants[0] for unit in units))
    end = format_instant(max(unit.instants[-1] for unit in units))
    click.echo(
        f"Stored snapshots follow from these prices. `analytics-service jobs recompute --start {start} --end {end}` "
        "computes them again."
    )


def _duration(seconds: float) -> str:
    return f"{seconds / MINUTE:,.0f} min" if seconds > 90 else f"{seconds:.0f} s"
