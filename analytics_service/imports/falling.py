"""Cumulative histories never fall: refuses rows that would make one, among themselves or beside what the store has."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

import polars as pl

from analytics_service.clickhouse.connection import Store
from analytics_service.errors import ImportRefused
from analytics_service.imports.disagreeing import cited
from analytics_service.imports.names import AssetNames
from analytics_service.imports.presets import Preset
from analytics_service.imports.reading import ReadFile
from analytics_service.market.instants import instant, shown
from analytics_service.market.kinds import DECIMAL
from analytics_service.market.values import less, rounded

_ROWS: dict[str, type[pl.DataType] | pl.DataType] = {"observed_at": pl.UInt32, "value": DECIMAL}


@dataclass(frozen=True, slots=True)
class Fall:
    """A value of an asset below the one before: the seconds and values of both, and whether each is the store's."""

    asset_id: str
    second: int
    value: Decimal
    is_stored: bool
    second_before: int
    value_before: Decimal
    is_stored_before: bool


def first_fall(store: Store | None, preset: Preset, rows: pl.DataFrame) -> Fall | None:
    """The first fall that merged rows of a cumulative history would make, by asset; None means an empty store."""
    if not preset.history.cumulative:
        return None
    for (asset,), part in rows.partition_by("asset", as_dict=True, include_key=False).items():
        imported = part.select(list(_ROWS)).cast(_ROWS)  # type: ignore[arg-type]
        bounds = imported.select(start=pl.col("observed_at").min(), end=pl.col("observed_at").max()).row(0, named=True)
        bound = {"history": preset.history.name, "asset_id": str(asset), **bounds}
        stored = store.frame("series_around", **bound).cast(imported.schema) if store else imported.clear()
        kept = stored.join(imported, on="observed_at", how="anti").with_columns(is_stored=True)
        series = pl.concat([kept, imported.with_columns(is_stored=False)]).sort("observed_at")
        both = series.with_columns(pl.all().shift(1).name.suffix("_before"))
        # Whatever the store has is not the import's fault.
        is_new = ~(pl.col("is_stored") & pl.col("is_stored_before"))
        if (falls := both.filter((pl.col("value") < pl.col("value_before")) & is_new).head(1)).height:
            return Fall(str(asset), *falls.row(0))
    return None


def refusal(preset: Preset, fall: Fall, files: Sequence[ReadFile], names: AssetNames) -> ImportRefused:
    """The refusal of rows that make a fall. Reads the files again, to name the row."""
    of, offset = fall.asset_id or "all assets", less(fall.value_before, fall.value)
    second = fall.second_before if fall.is_stored else fall.second
    row = cited(files, names, fall.asset_id, second)
    before = f"{rounded(fall.value_before):f} USD at {shown(instant(fall.second_before))}"
    after = f"{rounded(fall.value):f} USD at {shown(instant(fall.second))}"
    if fall.is_stored_before:
        cure = f"is {offset} less than what the store has from before. Add that to the values, if they begin anew"
    elif fall.is_stored:
        start = shown(instant(fall.second))
        cure = (
            f"is {offset} more than what the store has later, which would have to be raised by that. Take it out with "
            f"`analytics-service remove loans --start {start}`, import again, and take its snapshots anew with "
            f"`analytics-service jobs backfill loans --start {start} --end now`: their sums go on from imported ones"
        )
    else:
        cure = f"is {offset} less than the row before. Correct one of both"
    return ImportRefused(
        f"{preset.history.slug} of {of} would fall from {before} to {after}, so nothing was written. {row} {cure}."
    )
