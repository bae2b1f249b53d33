"""Which columns of a file are the time, the asset and the value: those of these names, or those that the caller names.
Own pages and exports are known by all of their columns."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from analytics_service.errors import ImportRefused
from analytics_service.importing.money import QUOTES, file_money, named_money
from analytics_service.importing.reading import RECIPES, Table
from analytics_service.importing.stamps import CANDLE
from analytics_service.importing.values import may_be_percent
from analytics_service.store.datasets.histories import TOTALS, History

# Names of columns that name assets: beside --asset, they must name one.
_ASSETS = ("asset", "asset_id", "symbol", "ticker", "pair", "token", "coin")
# The column of values of a wide file, once each row has one.
WIDE_VALUE = "the values of columns"
_TOTALS, _VIEW, _EXACT = ("history", "observed_at", "usd"), ("asset_id", "symbol", "observed_at"), "value_exact"
_PAGES = [
    (*time, *asset, *values)
    for time in (("t",), ("t", "time"))
    for asset in (("asset_id", "symbol"), ())
    for values in (("v",), ("o", "h", "l", "c", "n"))
]
# Names of columns of rates that are often in percent.
_PERCENT = re.compile("%|percent|pct|apy", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ColumnChoice:
    """What the caller says about columns: their names, the one asset of all rows, or a pattern of the names of files
    with SYMBOL where theirs is, that each column but the time is an asset, or that open, high and low are wanted."""

    time: str | None = None
    asset_column: str | None = None
    value: str | None = None
    asset: str | None = None
    symbol_from: str | None = None
    wide: bool = False
    candles: bool = False


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns that an import reads. Without a column `asset`, all rows are of the asset `named`, or of the sum over
    all if that is None.

    `values` are columns by name: `value`, and open, high and low of candles. Each of the columns `wide` is of the asset
    of its name. Rows of own files have the symbol beside the id, and rates in fractions; a `page` has the `count` of
    observations in each bucket; `history` is the column of names if rows are of several. Columns in `same` must name
    one asset, `quotes` say in what prices are. `beside` are columns of opens, highs and lows that are not read; if
    there are such, `is_candle` says whether the value is a close.
    """

    time: str
    values: Mapping[str, str]
    asset: str | None = None
    named: str | None = None
    wide: Sequence[str] = ()
    symbol: str | None = None
    own: bool = False
    page: bool = False
    count: str | None = None
    history: str | None = None
    same: Sequence[str] = ()
    quotes: Sequence[str] = ()
    beside: Sequence[str] = field(default=())
    is_candle: bool = False

    @property
    def columns(self) -> list[str]:
        """The columns that are read, each once."""
        single = (self.time, self.asset, self.symbol, self.count, self.history)
        values = self.wide or self.values.values()
        used = (*single, *values, *self.same, *self.quotes)
        return list(dict.fromkeys(column for column in used if column is not None))


def lay_out(table: Table, history: History, choice: ColumnChoice, *, percent: bool) -> Layout:
    """The layout of a table, whose rates are in `percent` or not. ImportRefused if a column is missing, or if its name
    says that its values are in another unit."""
    own = _own(table, history, choice)
    if own is not None:
        return own
    asset = _symbol_of(table.path, choice.symbol_from) if choice.symbol_from else choice.asset
    time = _required(table, "time" if choice.time is None else choice.time, "--time")
    if (money := file_money(table.path.stem)) and not may_be_percent(history):
        raise ImportRefused(
            f"The name of {table.path} says {money}, and values are in USD. Convert them, or rename it."
        )
    if choice.wide:
        wide = [column for column in table.columns if column != time and column.strip()]
        if len(set(wide)) < len(wide) or not wide:
            raise ImportRefused(f"{table.path} has no column but the time, or two of one name. Name each asset once.")
        return Layout(time, {"value": WIDE_VALUE}, wide=wide)
    value = _required(table, choice.value or ("close" if choice.candles else "value"), "--value")
    _require_unit(table, history, value, percent=percent)
    candle = {name: column for name in CANDLE if (column := table.column(name)) and column != value}
    if choice.candles and len(candle) < len(CANDLE):
        raise ImportRefused(f"{table.path} has not all of the columns open, high and low. Leave out --candles.")
    column = None
    if (
        asset is None
        and history.by_asset is not None
        and (choice.asset_column or table.column("asset") or not history.total)
    ):
        column = _required(table, choice.asset_column or "asset", "--asset-column, or say --asset SYMBOL")
    used = {time, value, column}
    found = [column for column in map(table.column, (*_ASSETS, *QUOTES)) if column and column not in used]
    return Layout(
        time, {**(candle if choice.candles else {}), "value": value}, column, asset,
        same=[] if column else [name for name in found if name.casefold() not in QUOTES],
        quotes=[name for name in found if name.casefold() in QUOTES],
        beside=[] if choice.candles else [*candle.values()],
        is_candle="close" in value.casefold() and bool(candle.keys() & {"open", "high"}),
    )  # fmt: skip


def _own(table: Table, history: History, choice: ColumnChoice) -> Layout | None:
    """The layout of a page or an export that the service wrote."""
    names = tuple(table.columns)
    if names in _PAGES:
        ohlc, asset = "c" in names, "asset_id" if "asset_id" in names else None
        candle = {"open": "o", "high": "h", "low": "l"} if choice.candles and ohlc else {}
        return Layout(
            "t", {**candle, "value": "c" if ohlc else "v"}, asset, symbol="symbol" if asset else None,
            own=True, page=True, count="n" if ohlc else None,
        )  # fmt: skip
    value = _EXACT if _EXACT in names else names[-1]
    plain = tuple(name for name in names if name != _EXACT)
    if plain == _TOTALS and history in TOTALS:
        return Layout("observed_at", {"value": value}, own=True, history="history")
    if plain == ("observed_at", history.value) and history.by_asset is None:
        return Layout("observed_at", {"value": value}, own=True)
    if plain == (*_VIEW, history.value):
        return Layout("observed_at", {"value": value}, "asset_id", symbol="symbol", own=True)
    return None


def _required(table: Table, name: str, option: str) -> str:
    column = table.column(name)
    if column is None:
        shown = ", ".join(table.columns)[:200]
        if len(table.columns) == 1 and (mark := re.search(r"[,;|\t]", shown)):
            raise ImportRefused(
                f"{table.path} has one column, {shown!r}. Say --separator {mark[0]!r} if it is several."
            )
        raise ImportRefused(
            f"{table.path} has no column {name!r}, or several; it has {shown!r}. Name the column with {option}; for "
            f"files without a header there are recipes: {RECIPES}."
        )
    return column


def _require_unit(table: Table, history: History, value: str, *, percent: bool) -> None:
    """ImportRefused if the name of a column of values says that they are not in the unit of the history."""
    if not may_be_percent(history) and (money := named_money(value)):
        raise table.refused(None, value, None, f"the name says {money}, and values are in USD; convert them")
    if may_be_percent(history) and not percent and _PERCENT.search(value):
        advice = "may be in percent; say --percent, or rename the column if its values are fractions"
        raise table.refused(None, value, None, advice)


def _symbol_of(path: Path, pattern: str) -> str:
    """The symbol in the name of a file, and in as many folders above it as a pattern has. ImportRefused if that may be
    several, or none."""
    name = "/".join(path.absolute().parts[-pattern.count("/") - 1 :])
    expression = re.escape(pattern).replace(r"\*", ".*")
    matches = (re.fullmatch(expression.replace("SYMBOL", part), name) for part in ("(.+?)", "(.+)"))
    symbols = sorted({match[1] for match in matches if match})
    if len(symbols) != 1:
        readings = f" may say {' or '.join(symbols)}" if symbols else " does not fit"
        raise ImportRefused(
            f"The name of {path}{readings} by --symbol-from {pattern}. Write SYMBOL where names have the symbol, and * "
            "for what else differs."
        )
    return symbols[0]
