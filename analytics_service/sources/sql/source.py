"""A source that reads documented views in a database of the store's own ClickHouse: `sql:DATABASE`."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import groupby
from operator import itemgetter
from typing import Any

import polars as pl

from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.errors import AnalyticsError, OutOfRange, SchemaError, SettingError, SourceError
from analytics_service.market.assets import Asset
from analytics_service.market.events import Event
from analytics_service.market.instants import format_instant, from_unix, unix_second
from analytics_service.market.kinds import TIME_LIMIT, columns_of, record_of
from analytics_service.market.markets import NO_CONFIG, GlobalConfig, Market
from analytics_service.market.positions import Position, SwapContract
from analytics_service.market.prices import Price
from analytics_service.market.ptoken import Arrangement, Ptoken, StakingPool, no_ptoken
from analytics_service.sources.base import Source
from analytics_service.sources.sql import views
from analytics_service.sources.sql.views import MARKETS, REQUIRED, VIEWS, SourceView, column_of
from analytics_service.store.datasets.positions import KINDS, POSITION_COLUMNS, position_of

_HELP = "`analytics-service example source-views` prints all views with their columns."
# Views with a row for each asset or event. A value that cannot be read stays as it is, and costs only its row.
_APART = (views.ASSET, views.PRICE, views.MARKET, views.EVENT)
# Columns that identify a row in a message, if it has them.
_NAMING = ("asset_id", "id", "address", "contract", "pool", "kind", "observed_at", "at")
# Bytes of a view's rows as of an instant, and of positions: a million addresses take 270 MB.
_MOST_BYTES = (2**28, 2**30)
# An instant this recent counts as now, for a job that is slow or retries.
_RECENT = timedelta(minutes=15)


class SqlSource(Source):
    """A protocol whose state is in views. The state at an instant is in the newest rows at or before it. SettingError
    if a view, a column or a type is missing or wrong."""

    may_hang = False
    spec = ""

    def __init__(self, spec: str, settings: Settings, store: Store) -> None:
        self.spec = spec
        self._store = store
        self._database = spec.partition(":")[2]
        if self._database == settings.clickhouse_database:
            raise SettingError(f"{spec} names the service's own database. Create the views in another database.")
        self._columns = self._checked_columns()
        self.has_markets = views.MARKET.name in self._columns

    def assets(self, at: datetime) -> Sequence[Asset]:
        """The assets of `source_asset`, the same at every instant."""
        return [
            record_of(Asset, {**row, "decimals_denom": row["decimals"]}, group=group, group_key=key)
            for row in self._rows(views.ASSET, at)
            for group, _, key in [row["asset_id"].partition(";")]
        ]

    def prices(self, at: datetime) -> Sequence[Price]:
        """The newest price of each asset."""
        prices = (record_of(Price, row) for row in self._rows(views.PRICE, at))
        return [replace(price, observed_at=price.observed_at.replace(microsecond=0)) for price in prices]

    def markets(self, at: datetime) -> Sequence[Market]:
        """The newest row of each asset, without rows that have neither lend, collateral nor debt."""
        markets = [_market(row) for row in self._rows(views.MARKET, at)]
        return [market for market in markets if market.lend or market.collateral or market.debt]

    def config(self, at: datetime) -> GlobalConfig:
        """The newest row; without the view, a neutral configuration."""
        row = self._single(views.CONFIG, at)
        return NO_CONFIG if row is None else record_of(GlobalConfig, row)

    def events(self, start: datetime, end: datetime) -> Sequence[Event]:
        rows = self._rows(views.EVENT, start=unix_second(start), end=unix_second(end))
        return [record_of(Event, row) for row in rows]

    def complete_until(self, at: datetime) -> datetime | None:
        """The present value of `source_complete`, if the view exists."""
        return (self._single(views.COMPLETE, at) or {}).get("complete_until")

    def ptoken(self, at: datetime) -> Ptoken:
        """The newest row, with the pools of their newest instant."""
        row = self._single(views.PTOKEN, at)
        if row is None:
            return no_ptoken(at)
        return record_of(Ptoken, row, pools=tuple(record_of(StakingPool, pool) for pool in self._rows(views.POOL, at)))

    def arrangements(self, at: datetime) -> Sequence[Arrangement]:
        """All rows of the newest instant."""
        return [record_of(Arrangement, row) for row in self._rows(views.ARRANGEMENT, at)]

    def positions(self, at: datetime) -> Iterable[Position]:
        """The positions in the rows of the newest instant. SourceError before the first instant, when positions are
        unknown rather than empty."""
        has_rows = False
        rows = self._rows(views.POSITION, at, by="address")
        for address, items in groupby(rows, lambda row: str.lower(row["address"])):
            has_rows, in_order = True, sorted(items, key=itemgetter("kind", "account_index", "asset_id"))
            yield position_of(address, [self._item(item) for item in in_order])
        if not has_rows and any(self._rows(views.POSITION, from_unix(TIME_LIMIT - 1))):
            raise SourceError(f"{self.spec}: {views.POSITION.name} has no rows at or before {format_instant(at)}.")

    def swaps(self, at: datetime) -> Sequence[SwapContract]:
        """The contracts with the routes of the newest instant. A row with an empty source has no routes."""
        contracts: dict[str, dict[str, tuple[str, ...]]] = {}
        for row in self._rows(views.ROUTE, at):
            routes = contracts.setdefault(row["contract"], {})
            if row["source"]:
                routes[row["source"]] = row["targets"]
        return [SwapContract(address, routes) for address, routes in contracts.items()]

    def _checked_columns(self) -> dict[str, dict[str, str]]:
        """The types of the columns of each existing view."""
        columns: dict[str, dict[str, str]] = {}
        for view, name, type_name in self._store.query("list_source_columns", database=self._database).iter_rows():
            columns.setdefault(view, {})[name] = type_name
        if faults := list(_faults(columns)):
            raise SettingError(f"{self.spec} cannot be read: {'; '.join(faults)}. {_HELP}")
        return columns

    def _single(self, view: SourceView, at: datetime) -> dict[str, Any] | None:
        """The only row of a view as of an instant; None without the view. SourceError unless there is exactly one."""
        rows = list(self._rows(view, at))
        if view.name in self._columns and len(rows) != 1:
            raise SourceError(
                f"{self.spec}: {view.name} has {len(rows)} rows as of {format_instant(at)}; it must have one."
            )
        return rows[0] if rows else None

    def _rows(
        self, view: SourceView, at: datetime | None = None, by: str = "", **parameters: Any
    ) -> Iterator[dict[str, Any]]:
        """The rows of a view as of an instant, or for other parameters of its query, ordered by the text column `by` if
        that is given, ignoring case. No rows without the view. SourceError for the past of a view that has only present
        rows."""
        present = self._columns.get(view.name)
        if present is None:
            return
        timed = view.query == "read_source_events" or "observed_at" in present
        if view.moves and not timed and at is not None and at < datetime.now(UTC) - _RECENT:
            raise SourceError(
                f"{self.spec}: {view.name} has no column observed_at, so it has only present rows, and none as of "
                f"{format_instant(at)}. Add this column for older rows."
            )
        # Rows of a view without times are valid at the requested instant.
        common = {}
        if at is not None:
            parameters["at"] = unix_second(at)
            common = {} if "observed_at" in present else {"observed_at": unix_second(at) * 1_000_000}
        placeholders = {
            "columns": ", ".join(f"{view.columns[name].select.format(name)} AS {name}" for name in present),
            "key": ", ".join(f"v.{name}" for name in view.key),
            "most_bytes": str(_MOST_BYTES[view == views.POSITION]),
        }
        parameters |= {"database": self._database, "view": view.name}
        try:
            rows = self._store.query(view.query if timed else "read_source_rows", placeholders, **parameters)
        except AnalyticsError as error:
            # Something below the view is missing, not a table of the service.
            made_from = f"Check the tables that {self._database}.{view.name} reads."
            why = f"{error.reason.rstrip('.')}. {made_from}" if isinstance(error, SchemaError) else str(error)
            raise SourceError(f"{self.spec}: the view {view.name} cannot be read: {why}") from error
        if by:
            rows = rows.sort(pl.col(by).str.to_lowercase(), maintain_order=True)
        for row in rows.iter_rows(named=True):
            yield self._decoded(view, common | row)

    def _decoded(self, view: SourceView, row: Mapping[str, Any]) -> dict[str, Any]:
        """A row as domain values. SourceError, identifying the row, for a value that cannot be used, except in views of
        _APART."""
        values: dict[str, Any] = {}

        def fill(name: str, value: Callable[[Any], Any], of: Any) -> None:
            try:
                values[name] = value(of)
            except (ValueError, TypeError, OutOfRange) as error:
                # A default that is computed from an unreadable value raises TypeError.
                if view in _APART and (name in row or isinstance(error, TypeError)):
                    values[name] = row.get(name)
                    return
                whose = ", ".join(f"{key} {values[key]}" for key in _NAMING if values.get(key) not in (None, ""))
                of = f" of {whose}" if whose else ""
                stated = "NULL" if row.get(name) is None else repr(row[name])
                stated = stated if name in row else "no column of the view"
                reason = str(error).rstrip(".")
                raise SourceError(f"{self.spec}: {view.name}.{name}{of} is {stated}: {reason}.") from error

        for name, kind in view.columns.items():
            if row.get(name) is not None:
                fill(name, kind.read, row[name])
        for name in view.columns:
            if values.get(name) is None:
                fill(name, view.default(name).of, values)
        return values

    def _item(self, row: dict[str, Any]) -> list[Any]:
        """A row of positions as values of POSITION_COLUMNS."""
        if row["kind"] not in KINDS:
            raise SourceError(
                f"{self.spec}: {views.POSITION.name}.kind of {row['address']} is {row['kind']!r}: "
                f"it must be one of {', '.join(KINDS)}."
            )
        row["until"] = None if row["until"] is None else unix_second(row["until"])
        return [row[name] for name in POSITION_COLUMNS]


def _faults(columns: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """The faults of the existing views, by the types of their columns."""
    for name, view in VIEWS.items():
        if name not in columns:
            if view.required:
                yield f"the service's user cannot read a view {name}"
            continue
        present = columns[name]
        for column, kind in view.columns.items():
            if column not in present:
                if view.default(column) is REQUIRED:
                    yield f"{name} has no column {column} ({kind.allowed})"
            elif not kind.fits(present[column]):
                yield f"{name}.{column} is {present[column]}; cast it to {kind.allowed} in the view"
        # A misspelt column would count as missing.
        for column in present.keys() - view.columns.keys():
            yield f"{name}.{column} is unknown; the columns of {name} are {', '.join(view.columns)}"
    for name in columns.keys() - VIEWS.keys():
        yield f"{name} is unknown; the views are {', '.join(VIEWS)}"


def _market(row: Mapping[str, Any]) -> Market:
    parts = {
        market: record_of(record, {field: row[column_of(market, field)] for field in columns_of(record)})
        for market, (record, amount) in MARKETS.items()
        if row[amount] is not None
    }
    return Market(row["asset_id"], parts.get("lend"), parts.get("collateral"), parts.get("debt"))
