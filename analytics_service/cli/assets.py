"""`assets end`: end an asset that no source lists any more."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from analytics_service.cli.context import load_settings, open_store, waiting_for_store
from analytics_service.cli.options import TIMES, data_dir_option, time_option
from analytics_service.clickhouse.connection import Store
from analytics_service.errors import EntityNotFound, ParameterInvalid, UserError
from analytics_service.history.times import Edge
from analytics_service.market.assets import Asset, is_listed, resolve_id
from analytics_service.market.instants import format_instant, from_unix
from analytics_service.store.datasets.assets import present_frame, read_assets, read_spans
from analytics_service.store.rewrite import write_definitions

_SECOND = timedelta(seconds=1)


@click.group()
def assets() -> None:
    """End an asset; the view `all_assets` lists them.

    ASSET is an id, or a symbol that no other asset has. Example:

    \b
        analytics-service assets end native;luna
    """


@assets.command("end", epilog=TIMES)
@click.argument("asset", metavar="ASSET")
@time_option(Edge.AT, "Last instant of the asset.  [default: when its source last listed it, else its last value]")
@click.option("--undo", is_flag=True, help="Remove the end of the asset.")
@data_dir_option
def assets_end(asset: str, at: datetime | None, undo: bool, **overrides: Any) -> None:
    """End an asset that no source lists any more.

    Its histories have no values after its end, and it leaves current lists and sums. A source's asset ends by itself
    when the source has not listed it for ANALYTICS_PRICE_MAX_AGE. Example:

    \b
        analytics-service assets end native;luna --at 2026-05-13T02:14Z
    """
    if undo and at:
        raise click.UsageError("--undo removes the end, so --at cannot be used with it.")
    with open_store(waiting_for_store(load_settings(**overrides))) as store:
        stored = _find(store, asset)
        changed = _without_end(stored) if undo else _with_end(store, stored, at)
        write_definitions(store, present_frame(store, [changed]), "end")
    until = f"has no values after {format_instant(changed.ended_at)}" if changed.ended_at else "has not ended"
    click.echo(f"{asset_label(changed)} {until}.")


def _find(store: Store, name: str) -> Asset:
    """The asset with this id or symbol. UserError if there is none, or several."""
    stored = read_assets(store)
    try:
        return stored[resolve_id(name, stored, "ASSET")]
    except (EntityNotFound, ParameterInvalid) as error:
        raise UserError(f"{error} The view `all_assets` lists them.") from None


def asset_label(asset: Asset) -> str:
    return f"{asset.symbol} ({asset.id})"


def _with_end(store: Store, asset: Asset, at: datetime | None) -> Asset:
    """The asset with an end. UserError if a source lists it, or if it has no values and no `at` is given."""
    if is_listed(asset):
        raise UserError(
            f"The source lists {asset_label(asset)}, so its next snapshot would remove the end. The asset ends by "
            f"itself when the source has not listed it for {store.price_max_age // _SECOND:,} s "
            "(ANALYTICS_PRICE_MAX_AGE)."
        )
    span = read_spans(store).get(asset.id)
    at = at or asset.listed_until or (from_unix(span[1]) if span else None)
    if at is None:
        raise UserError(f"{asset_label(asset)} has no values. Name its end with --at.")
    if at > datetime.now(UTC):
        raise UserError(f"{format_instant(at)} is in the future.")
    return replace(asset, ended_at=at.replace(microsecond=0))


def _without_end(asset: Asset) -> Asset:
    """The asset without its end, even while snapshots do not list it. UserError if it has not ended."""
    if asset.ended_at is None:
        raise UserError(f"{asset_label(asset)} has not ended.")
    return replace(asset, ended_at=None, listed_until=None)
