"""Observations of histories: batches to insert, and readers."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from itertools import product

import polars as pl

from analytics_service.clickhouse.columns import UNFIT, encode_tuples, require_fit, schema_of
from analytics_service.clickhouse.connection import Store
from analytics_service.market.instants import from_unix
from analytics_service.market.kinds import DECIMAL, AssetId, Text, Time
from analytics_service.market.prices import Price
from analytics_service.store.datasets.histories import PRICES, History, names_of
from analytics_service.store.rollups import lookback_start

OBSERVATIONS = "observation"


class _AssetOrTotal(Text):
    """The id of an asset, or TOTAL."""

    def encode(self, asset_id: str, /) -> str:
        return asset_id and AssetId.encode(asset_id)


_KEYS = {"history": Text(), "asset_id": _AssetOrTotal(), "observed_at": Time()}
_SCHEMA = {**schema_of(_KEYS), "value": DECIMAL}
NO_OBSERVATIONS = pl.DataFrame(schema=_SCHEMA)
# Primary key: an observation replaces an older one with the same key.
KEY = ["history", "asset_id", "observed_at"]
# Observations of one query. Their ids are a parameter, which may be 128 KiB long.
_AT_ONCE = 500
# Seconds of one query; they are shorter than ids.
SECONDS_AT_ONCE = 5_000

# The values of a snapshot by history and asset id; None where a value is unknown.
Values = Mapping[History, Mapping[str, Decimal | None]]


def observations_of(values: Values, at: datetime) -> pl.DataFrame:
    """Values at an instant as observations; `value` is null if unknown."""
    return _frame(
        (history, asset_id, at, value) for history, by_asset in values.items() for asset_id, value in by_asset.items()
    )


def with_known_times(observations: pl.DataFrame) -> pl.DataFrame:
    """Observations as the table stores them: an unknown value is 0, and not `known`."""
    return observations.with_columns(pl.col("value").fill_null(0), known=pl.col("value").is_not_null())


def price_frame(prices: Iterable[Price]) -> pl.DataFrame:
    """Prices, each at its own instant, as a batch without `version`."""
    return _frame((PRICES, price.asset_id, price.observed_at, price.usd) for price in prices)


def _frame(rows: Iterable[tuple[History, str, datetime, Decimal | None]]) -> pl.DataFrame:
    """Observations in the columns of the table. OutOfRange names the one that cannot be stored."""
    listed = [*rows]
    keys = encode_tuples(((history.name, asset_id, at) for history, asset_id, at, _ in listed), _KEYS)
    values = [_stored(history, asset_id, value) for history, asset_id, _, value in listed]
    return keys.with_columns(pl.Series("value", values, DECIMAL))


def _stored(history: History, asset_id: str, value: Decimal | None) -> Decimal | None:
    try:
        return None if value is None else history.kind.encode(value)
    except UNFIT:
        require_fit(history.value, history.kind, value, {"asset_id": asset_id})
        raise


def drop_stored(store: Store, prices: pl.DataFrame) -> pl.DataFrame:
    """The observations of a `price_frame` that no complete commit has written, in order. Takes a query for every
    500."""
    stored = [
        store.query(
            "read_stored_prices", ids=batch["asset_id"].unique().to_list(), seconds=batch["observed_at"].to_list()
        )
        for batch in prices.iter_slices(_AT_ONCE)
    ]
    if not stored:
        return prices
    written = pl.concat(stored).cast({"observed_at": pl.UInt32, "value": DECIMAL})
    return prices.join(written, on=["asset_id", "observed_at", "value"], how="anti", maintain_order="left")


def read_series(store: Store, history: History, before: int) -> dict[str, int]:
    """The first instant (unix second) of each series with an observation before a second, in the order of ids."""
    rows = store.query("list_series", (), history=history.name, **lookback_start(before))
    return dict(rows.iter_rows())


def read_latest(store: Store, history: History, ids: Sequence[str], at: int) -> dict[str, tuple[Decimal, datetime]]:
    """Value and instant of the last observation at or before a second, by id in the order of `ids`, without ids whose
    last value is unknown or missing. The second must not be after the dataset's newest observation, because open
    rollups count as empty (rule 8.11, closed rollups). A month of history costs one row."""
    parameters: dict[str, object] = {"history": history.name, "ids": list(ids), "bounds": [0]}
    rows = store.query("read_last_rows", ["read_last_before"], **parameters, **lookback_start(at + 1))
    columns = rows.sort("series").select("series", "close", "last_at").iter_rows()
    return {ids[series]: (Decimal(value), from_unix(second)) for series, value, second in columns if value is not None}


def read_around(store: Store, start: int, end: int) -> pl.DataFrame:
    """Observations of complete snapshots of markets, from the last before [start, end) (unix seconds) to the first
    after it. `value` is null for a market without a known value."""
    rows = store.query("read_market_values", histories=names_of("markets"), start=start, end=end)
    return rows.cast(pl.Schema(_SCHEMA))


def read_observed_at(store: Store, dataset: str, seconds: Sequence[int]) -> pl.DataFrame:
    """Observations of a dataset's histories at ascending unix seconds, in the columns of `observations_of` and
    `imported`: whether they come from an import."""
    start, end = seconds[0], seconds[-1] + 1
    rows = store.query("read_observed_between", dataset=dataset, histories=names_of(dataset), start=start, end=end)
    return rows.filter(pl.col("observed_at").is_in(seconds)).cast({"observed_at": pl.UInt32, "value": DECIMAL})


def read_last_prices(store: Store, ids: Iterable[str], seconds: Sequence[int]) -> dict[str, dict[int, Price]]:
    """The last price of each asset at or before each unix second, without seconds before the asset's first price."""
    prices: dict[str, dict[int, Price]] = {asset_id: {} for asset_id in ids}
    names, ordered = [*prices], sorted(set(seconds))
    for start, begin in product(range(0, len(ordered), SECONDS_AT_ONCE), range(0, len(names), _AT_ONCE)):
        batch, some = ordered[start : start + SECONDS_AT_ONCE], names[begin : begin + _AT_ONCE]
        rows = store.query("read_prices_at", ids=some, seconds=batch, first=batch[0], last=batch[-1])
        for asset_id, second, observed_at, usd in rows.iter_rows():
            prices[asset_id][second] = Price(asset_id, from_unix(observed_at), usd)
    return prices
