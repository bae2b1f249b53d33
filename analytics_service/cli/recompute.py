"""`jobs recompute`, and the same after an import of prices."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import click

from analytics_service.cli.context import load_settings, open_store, patient
from analytics_service.cli.options import TIMES, data_dir_option, past_end, require_range, time_option
from analytics_service.cli.signals import explaining_stop
from analytics_service.clickhouse.connection import Store
from analytics_service.errors import Lost
from analytics_service.history.times import Edge
from analytics_service.market.instants import MINUTE, instant, shown, unix_second
from analytics_service.store.datasets.histories import names_of
from analytics_service.store.datasets.observations import read_next_prices
from analytics_service.store.ledger import read_ledger
from jobs.again import FAMILIES, Portion, day_by_day, recompute, seconds_for


@click.command("recompute", epilog=TIMES)
@click.argument("family", type=click.Choice(FAMILIES), required=False)
@time_option(Edge.START, "First second.", required=True)
@time_option(Edge.END, "Last second, itself included.", required=True)
@click.option("--dry-run", is_flag=True, help="Say how much there is to compute; stop there.")
@data_dir_option
def jobs_recompute(family: str | None, start: datetime, end: datetime, dry_run: bool, **overrides: Any) -> None:
    """Compute again what follows from stored prices, markets, positions and events.

    These are sums in USD and the prices kept with markets, the risk of positions, and the sums of loans and
    liquidations: of one FAMILY, or of all. Sums of loans are made from those before, so all later ones follow. Run it
    after a correction of prices. What comes out as it is stored is not written. May be stopped and run again. Example:

    \b
        analytics-service jobs recompute --start 2026-03-01 --end 2026-03-05 --dry-run
    """
    require_range(start, end)
    end = past_end(end, datetime.now(UTC))
    with open_store(patient(load_settings(**overrides))) as store:
        _require_inputs(store, start, end)
        compute(store, day_by_day(store, [family] if family else FAMILIES, start, end), dry_run=dry_run)


def _require_inputs(store: Store, start: datetime, end: datetime) -> None:
    """Lost if the store has lost rows of the range that are not computed (rule 8.19)."""
    for family, losses in read_ledger(store).losses.items():
        computed = names_of(family) if family in FAMILIES else ()
        for loss in losses:
            if family and loss.what not in computed and loss.overlaps(unix_second(start), unix_second(end)):
                raise Lost(
                    f"This would be computed without what is lost: {loss}. See `analytics-service status` first."
                )


def compute(store: Store, portions: Sequence[Portion], *, dry_run: bool = False) -> None:
    """Compute snapshots again, and say what it costs before and what came of it after."""
    if not portions:
        click.echo("There are no snapshots to compute again in this range.")
        return
    found: Counter[str] = Counter()
    for portion in portions:
        found[portion.family] += len(portion.instants) or 1
    sums = {"loans": "the sums of loans from then on"}
    counts = ", ".join(sums.get(family, f"{count:,} snapshots of {family}") for family, count in found.items())
    click.echo(f"To compute again: {counts}, in about {_duration(seconds_for(store, portions))}.")
    if dry_run:
        return
    changed: Counter[str] = Counter()
    with click.progressbar(length=found.total(), label="Computing") as bar:
        for portion in portions:
            first = shown(portion.start)
            outcome = f"Stopped. What was before {first} is done; go on from there."
            with explaining_stop(outcome, begun=portion is not portions[0]):
                changed[portion.family] += recompute(store, portion)
            bar.update(len(portion.instants) or 1)
    for family in found:
        rows = "observations" if family in sums else "snapshots"
        click.echo(f"{family}: {changed[family]:,} {rows} have changed.")


def following(store: Store, spans: Mapping[str, tuple[int, int]]) -> list[Portion]:
    """The snapshots that follow from new prices, whose first and last unix second is given by asset: from the first of
    an asset until it is priced next."""
    next_prices = read_next_prices(store, {asset: last for asset, (_, last) in spans.items()})
    if not next_prices:
        return []
    start = min(spans[asset][0] for asset in next_prices)
    end = max(second or unix_second(datetime.now(UTC)) for second in next_prices.values())
    return day_by_day(store, ("markets", "positions"), instant(start), instant(end))


def suggest(portions: Sequence[Portion]) -> None:
    """Say how to compute again what follows from new prices, if anything does."""
    if not portions:
        return
    start = shown(min(portion.instants[0] for portion in portions))
    end = shown(max(portion.instants[-1] for portion in portions))
    click.echo(
        f"Stored snapshots follow from these prices. `analytics-service jobs recompute --start {start} --end {end}` "
        "computes them again."
    )


def _duration(seconds: float) -> str:
    return f"{seconds / MINUTE:,.0f} min" if seconds > 90 else f"{seconds:.0f} s"
