"""Cumulative histories never fall: refuses rows that would make one, among themselves or beside what the store has."""

import polars as pl

from analytics_service.clickhouse.connection import Store
from analytics_service.errors import ImportRefused
from analytics_service.market.instants import instant, shown
from analytics_service.market.kinds import DECIMAL
from analytics_service.market.values import less, rounded
from analytics_service.store.datasets.histories import History

_ROWS: dict[str, type[pl.DataType] | pl.DataType] = {"observed_at": pl.UInt32, "value": DECIMAL}


def require_rising(store: Store | None, history: History, rows: pl.DataFrame) -> None:
    """ImportRefused for the first fall that merged rows of a cumulative history would make, by asset; None means an
    empty store."""
    if not history.cumulative:
        return
    for (asset,), part in rows.partition_by("asset", as_dict=True, include_key=False).items():
        imported = part.select(list(_ROWS)).cast(_ROWS)  # type: ignore[arg-type]
        bounds = imported.select(start=pl.col("observed_at").min(), end=pl.col("observed_at").max()).row(0, named=True)
        bound = {"history": history.name, "asset_id": str(asset), **bounds}
        stored = store.frame("read_series_around", **bound).cast(imported.schema) if store else imported.clear()
        kept = stored.join(imported, on="observed_at", how="anti").with_columns(is_stored=True)
        series = pl.concat([kept, imported.with_columns(is_stored=False)]).sort("observed_at")
        both = series.with_columns(pl.all().shift(1).name.suffix("_before"))
        # Whatever the store has is not the import's fault.
        is_new = ~(pl.col("is_stored") & pl.col("is_stored_before"))
        falls = both.filter((pl.col("value") < pl.col("value_before")) & is_new)
        if falls.height:
            raise _refusal(history, str(asset), falls.row(0, named=True))


def _refusal(history: History, asset_id: str, fall: dict[str, object]) -> ImportRefused:
    second, value, second_before, value_before = (
        fall[name] for name in ("observed_at", "value", "observed_at_before", "value_before")
    )
    offset = less(value_before, value)  # type: ignore[arg-type]
    start = shown(instant(second))  # type: ignore[arg-type]
    if fall["is_stored_before"]:
        cure = f"The file has {offset} less than the store from before: add that to its values, if they begin anew."
    elif fall["is_stored"]:
        cure = (
            f"The file has {offset} more than the store has later. Take that out with `analytics-service remove loans "
            f"--start {start}`, import again, and take its snapshots anew with `analytics-service jobs backfill loans "
            f"--start {start} --end now`: their sums go on from imported ones."
        )
    else:
        cure = f"The file has {offset} less than in the row before: correct one of both."
    before = f"{rounded(value_before):f} USD at {shown(instant(second_before))}"  # type: ignore[arg-type]
    return ImportRefused(
        f"{history.slug} of {asset_id or 'all assets'} would fall from {before} to {rounded(value):f} USD at {start}. "  # type: ignore[arg-type]
        f"{cure}"
    )
