"""What can be exported: the views of the database, with columns in types that all readers of the files know."""

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from analytics_service.errors import ExportRefused
from analytics_service.market.spreadsheets import escaped_sql
from analytics_service.store.connection import Store
from analytics_service.store.histories import HISTORIES, History

ALL = "all"
# Columns of time, by which a view is split into months.
_TIMES = ("observed_at", "time")
_WRAPPERS = re.compile(r"(?:LowCardinality|Nullable)\((.+)\)")
# Parquet and Arrow have decimals of up to 38 digits, and integers of up to 64 bits.
_SAME = re.compile(
    r"U?Int(8|16|32|64)|Float(32|64)|Bool|String|Date32|DateTime64\(.+\)|Decimal\(([1-9]|[12][0-9]|3[0-8]), \d+\)"
)


@dataclass(frozen=True, slots=True)
class ExportedView:
    """A view that can be exported: its columns with their types in ClickHouse, and its history if it is of one."""

    name: str
    columns: Mapping[str, str]
    history: History | None

    @property
    def time(self) -> str | None:
        """The column of time, by which the view is split into months; None if it has none."""
        return next((name for name in _TIMES if self.columns.get(name, "").startswith("DateTime")), None)

    def parts(self, suffix: str) -> Mapping[str, str]:
        """The placeholders of its queries for files of a format. Rows are ordered by asset, time, and then all other
        columns."""
        order = [name for name in ("asset_id", self.time) if name in self.columns]
        return {
            "view": f"`{self.name}`",
            "time": f"v.`{self.time}`" if self.time else "toDateTime(0, 'UTC')",
            "columns": ", ".join(
                f"{_converted(name, kind, suffix)} AS `{name}`" for name, kind in self.columns.items()
            ),
            "order": ", ".join(f"v.`{name}`" for name in dict.fromkeys([*order, *self.columns])),
        }


def _converted(name: str, kind: str, suffix: str) -> str:
    column = f"v.`{name}`"
    while wrapped := _WRAPPERS.fullmatch(kind):
        kind = wrapped[1]
    if kind == "String" and suffix == "csv":
        return escaped_sql(column)
    if _SAME.fullmatch(kind):
        return column
    # Formats write these types as bare numbers.
    if kind.startswith("DateTime"):
        return f"toDateTime64({column}, 3, 'UTC')"
    return f"toDate32({column})" if kind == "Date" else f"toString({column})"


def exported_views(store: Store, names: Sequence[str]) -> list[ExportedView]:
    """The views with these names, slugs of histories, or `all`. ExportRefused if there is no such view."""
    columns: dict[str, dict[str, str]] = {}
    for view, name, kind in store.frame("export_columns").iter_rows():
        columns.setdefault(view, {})[name] = kind
    histories = {history.name: history for history in HISTORIES}
    views = {name: ExportedView(name, columns[name], histories.get(name)) for name in columns}
    slugs = {history.slug: history.name for history in HISTORIES if history.name in views}
    known = slugs | {name: name for name in views}
    chosen = views if ALL in names else dict.fromkeys(_known(name, known) for name in names)
    return [views[name] for name in chosen]


def _known(name: str, known: Mapping[str, str]) -> str:
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, n=1)
    suggestion = f" Did you mean {near[0]}?" if near else ""
    listed = ", ".join(dict.fromkeys(known.values()))
    raise ExportRefused(f"There is no history or view {name[:80]!r}.{suggestion} There are: {listed}; or {ALL}.")
