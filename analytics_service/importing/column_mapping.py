"""Finds the columns of time, asset and value in a file, by these names or by the command's options. Pages and exports
of the service are recognized by all their columns. Prices must be in USD."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from analytics_service.errors import UserError
from analytics_service.importing.numbers import may_be_percent
from analytics_service.importing.readers import RECIPES, SourceTable
from analytics_service.importing.timestamps import CANDLE
from analytics_service.store.datasets.histories import TOTALS, History

# USD and currencies worth as much.
DOLLARS = ("usd", "usdt", "usdc", "dai", "busd", "tusd", "usdp", "fdusd", "pyusd", "gusd", "usde", "us$", "$")
_OFFICIAL = (
    *("eur", "gbp", "jpy", "chf", "cad", "aud", "nzd", "sek", "nok", "dkk", "pln", "czk", "huf", "try", "brl", "mxn"),
    *("zar", "inr", "krw", "cny", "hkd", "sgd", "rub", "uah"),
)
_COINS = ("eurc", "eurt", "btc", "xbt", "wbtc", "eth", "weth", "bnb", "sol")
# After a dash, other words belong to the symbol, as in UNI-V2.
_PAIR = re.compile(r"([A-Za-z0-9.]+)([/_-])([A-Za-z0-9.$]+)")
# Pairs without a separator. Shorter words are symbols, such as agEUR.
_JOINED = re.compile(rf"([a-z0-9]{{3,}}?)()({'|'.join(_OFFICIAL)})", re.IGNORECASE)
_VALUES = ("price", "close", "open", "high", "low", "value", "rate", "usd", "tvl")
# Columns that name assets. With --asset, all their rows must name one asset.
_ASSETS = ("asset", "asset_id", "symbol", "ticker", "pair", "token", "coin")
# Columns with the currency of prices.
_QUOTES = ("currency", "quote", "vs_currency", "quote_asset", "quote_currency")
# The column of values of an unpivoted wide file.
WIDE_VALUE = "the values of columns"
_TOTALS, _VIEW, _EXACT = ("history", "observed_at", "usd"), ("asset_id", "symbol", "observed_at"), "value_exact"
_PAGES = [
    (*time, *asset, *values)
    for time in (("t",), ("t", "time"))
    for asset in (("asset_id", "symbol"), ())
    for values in (("v",), ("o", "h", "l", "c", "n"))
]
# Columns of rates with these names are often in percent.
_PERCENT = re.compile("%|percent|pct|apy", re.IGNORECASE)


def base_currency(name: str) -> str | None:
    """The base of a pair in USD, such as BTC in BTC/USDT; None if the name is not such a pair."""
    pair = _PAIR.fullmatch(name)
    return pair[1] if pair and pair[3].casefold() in DOLLARS else None


def pair_fault(name: str) -> str | None:
    """The fault of an unknown symbol that is a pair in another currency than USD; None for other symbols."""
    pair = _PAIR.fullmatch(name) or _JOINED.fullmatch(name)
    if pair and pair[3].casefold() not in DOLLARS and (pair[2] == "/" or pair[3].casefold() in (*_OFFICIAL, *_COINS)):
        return f"is {pair[1]} in {pair[3]}, not in USD; convert the prices, or describe such an asset with --assets"
    return None


def named_money(name: str) -> str | None:
    """The currency other than USD in the name of a column of values, such as EUR in price_eur."""
    humps = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    words = re.findall("[a-z0-9$]+", humps.lower())
    money = [word for word in words if word in _OFFICIAL]
    money += [word for word in words[1:][-1:] if words[0] in _VALUES and word in _COINS]
    return money[0].upper() if money else None


@dataclass(frozen=True, slots=True)
class ColumnChoice:
    """The options about columns: names of columns, the asset of all rows, a pattern of file names that contains SYMBOL,
    `wide` if every column except the time is an asset, and `candles` to read open, high and low."""

    time: str | None = None
    asset_column: str | None = None
    value: str | None = None
    asset: str | None = None
    symbol_from: str | None = None
    wide: bool = False
    candles: bool = False


@dataclass(frozen=True, slots=True)
class ColumnMapping:
    """The columns that an import reads. Without a column `asset`, all rows belong to the asset `named`, or to the sum
    over all assets if that is None.

    `values` has columns by name: `value`, and open, high and low of candles. Columns in `wide` are named after their
    assets. `own` files were written by this service: they have a `symbol` beside the id, and rates as fractions. A
    `page` may have the `count` of observations in each bucket. `history` is the column of history names. Columns in
    `same` must name one asset, `quotes` have currencies. `beside` are columns of open, high and low that are not read,
    and `is_candle` says whether the value is then a close.
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
        """The columns to read, each once."""
        single = (self.time, self.asset, self.symbol, self.count, self.history)
        values = self.wide or self.values.values()
        used = (*single, *values, *self.same, *self.quotes)
        return list(dict.fromkeys(column for column in used if column is not None))


def map_columns(table: SourceTable, history: History, choice: ColumnChoice, *, percent: bool) -> ColumnMapping:
    """The columns of a table. UserError if a column is missing, or its name shows another unit."""
    own = _own(table, history, choice)
    if own is not None:
        return own
    if history.by_asset is None and (column := table.column("asset")):
        raise table.refused(
            None, column, None, f"cannot be imported: {history.slug} has no values of assets, only sums"
        )
    asset = _symbol_of(table.path, choice.symbol_from) if choice.symbol_from else choice.asset
    time = _required(table, "time" if choice.time is None else choice.time, "--time")
    if choice.wide:
        wide = [column for column in table.columns if column != time and column.strip()]
        if len(set(wide)) < len(wide) or not wide:
            raise UserError(f"{table.path} has only the column of times, or a repeated column. Name each asset once.")
        return ColumnMapping(time, {"value": WIDE_VALUE}, wide=wide)
    value = _required(table, choice.value or ("close" if choice.candles else "value"), "--value")
    _require_unit(table, history, value, percent=percent)
    candle = {name: column for name in CANDLE if (column := table.column(name)) and column != value}
    if choice.candles and len(candle) < len(CANDLE):
        raise UserError(f"{table.path} lacks some of the columns open, high and low. Leave out --candles.")
    column = None
    if (
        asset is None
        and history.by_asset is not None
        and (choice.asset_column or table.column("asset") or not history.total)
    ):
        column = _required(table, choice.asset_column or "asset", "--asset-column, or add --asset SYMBOL")
    same = [name for name in map(table.column, _ASSETS) if name and name != value] if asset else []
    quotes = [] if may_be_percent(history) else [name for name in map(table.column, _QUOTES) if name and name != value]
    return ColumnMapping(
        time, {**(candle if choice.candles else {}), "value": value}, column, asset,
        same=same,
        quotes=quotes,
        beside=[] if choice.candles else [*candle.values()],
        is_candle="close" in value.casefold() and bool(candle.keys() & {"open", "high"}),
    )  # fmt: skip


def _own(table: SourceTable, history: History, choice: ColumnChoice) -> ColumnMapping | None:
    """The columns of a page or an export of the service; None for other files."""
    names = tuple(table.columns)
    if names in _PAGES:
        ohlc, asset = "c" in names, "asset_id" if "asset_id" in names else None
        candle = {"open": "o", "high": "h", "low": "l"} if choice.candles and ohlc else {}
        return ColumnMapping(
            "t", {**candle, "value": "c" if ohlc else "v"}, asset, symbol="symbol" if asset else None,
            own=True, page=True, count="n" if ohlc else None,
        )  # fmt: skip
    value = _EXACT if _EXACT in names else names[-1]
    plain = tuple(name for name in names if name != _EXACT)
    if plain == _TOTALS and history in TOTALS:
        return ColumnMapping("observed_at", {"value": value}, own=True, history="history")
    if plain == ("observed_at", history.value) and history.by_asset is None:
        return ColumnMapping("observed_at", {"value": value}, own=True)
    if plain == (*_VIEW, history.value):
        return ColumnMapping("observed_at", {"value": value}, "asset_id", symbol="symbol", own=True)
    return None


def _required(table: SourceTable, name: str, option: str) -> str:
    column = table.column(name)
    if column is None:
        shown = ", ".join(table.columns)[:200]
        raise UserError(
            f"{table.path} has no column {name!r}, or several; it has {shown!r}. Name the column with {option}, or the "
            f"mark between columns with --separator; for files without a header, see {RECIPES}."
        )
    return column


def _require_unit(table: SourceTable, history: History, value: str, *, percent: bool) -> None:
    """UserError if the name of a column of values shows another unit than the history's."""
    if not may_be_percent(history) and (money := named_money(value)):
        raise table.refused(None, value, None, f"is in {money} by its name; convert the values to USD")
    if may_be_percent(history) and not percent and _PERCENT.search(value):
        advice = "may be in percent; add --percent, or rename the column if its values are fractions"
        raise table.refused(None, value, None, advice)


def _symbol_of(path: Path, pattern: str) -> str:
    """The symbol in the name of a file, with as many folders as the pattern has. UserError if there is none, or if
    several are possible."""
    name = "/".join(path.absolute().parts[-pattern.count("/") - 1 :])
    expression = re.escape(pattern).replace(r"\*", ".*")
    matches = (re.fullmatch(expression.replace("SYMBOL", part), name) for part in ("(.+?)", "(.+)"))
    symbols = sorted({match[1] for match in matches if match})
    if len(symbols) != 1:
        result = f"may find {' or '.join(symbols)}" if symbols else "finds no symbol"
        raise UserError(
            f"--symbol-from {pattern} {result} in the name of {path}. Write SYMBOL in place of the symbol, and * for "
            "other parts that differ."
        )
    return symbols[0]
