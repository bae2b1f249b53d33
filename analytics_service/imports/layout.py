"""Which columns of a file are the time, the value and the asset."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import polars as pl

from analytics_service.errors import ImportRefused
from analytics_service.imports.columnar import is_readable
from analytics_service.imports.judging import may_be_percent
from analytics_service.imports.presets import Preset
from analytics_service.imports.tables import Table
from analytics_service.store.datasets.histories import BORROW_RATES, LEND_RATES, PRICES, TOTALS, History

# Names of columns, in lower case and without marks between words.
TIMES = (
    *("time", "timestamp", "date", "datetime", "day", "t", "ts", "unix"),
    *("snapped_at", "observed_at", "block_time", "block_timestamp", "open_time", "event_time"),
    *("date,time", "observation_date", "time_period", "window_start"),
)
_ASSETS = ("asset_id", "symbol", "asset", "ticker", "id", "asset_address", "token", "token_symbol")
_VALUES = (
    *("price", "close", "value", "v", "usd", "apr", "rate", "usd_price", "price_usd"),
    *("close_usd", "close/last", "obs_value", "c"),
)
# Names of the values of a history besides its own.
_OF_HISTORY = {LEND_RATES.name: ("supply_apr", "supply_rate"), BORROW_RATES.name: ("borrow_apr",)}
# Names of the column of an index that has no name in the data frame.
_INDEX = ("", "__index_level_0__", "unnamed:_0")
# Names of columns that tell assets apart; ids may be those of rows.
_DISTINCT = tuple(name for name in _ASSETS if name != "id")
# The columns of pages of history as the service writes them.
_OWN = (("t", "time", "asset_id", "symbol", "v"), ("t", "asset_id", "symbol", "v"), ("t", "v"), ("t", "time", "v"))
# The columns of the views of histories by asset, and so of exports, before that of the value; and that of exact values
# after it. The view of totals has those of several histories.
_VIEW, _EXACT = ("asset_id", "symbol", "observed_at"), "value_exact"
_TOTALS = ("history", "observed_at", "usd")
# Where a word begins in a name such as txHash.
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
# The columns of own pages of candles after those of the asset.
_CANDLES = ("o", "h", "l", "c", "n")
# Names of the columns of a candle besides its close, and of its times.
_OF_CANDLE = {
    "open": ("open", "o", "open_price", "price_open", "open_usd"),
    "high": ("high", "h", "high_price", "price_high", "high_usd"),
    "low": ("low", "l", "low_price", "price_low", "low_usd"),
}
_OPENINGS = (
    *("open_time", "time_open", "opentime", "window_start", "period_start", "time_period_start", "start_time"),
    *("begin", "begin_time"),
)
_CLOSINGS = (
    *("close_time", "time_close", "closetime", "window_end", "period_end", "time_period_end", "end_time"),
    *("end",),
)
_CLOSES = ("close", "c", "close_price", "price_close", "close_usd", "close/last", "adj_close", "adjusted_close")
# Names of columns that say in what prices are.
_QUOTES = ("currency", "quote", "vs_currency", "quote_asset", "quote_currency")


@dataclass(frozen=True, slots=True)
class ColumnChoice:
    """What the caller says about the columns of files: their names, the symbol or id of the one asset, or that each
    column but the time is an asset; and that opens, highs and lows are wanted, too. `symbol_from` is a pattern of names
    of files, with SYMBOL where theirs is. None or False of what was not said."""

    time: str | None = None
    value: str | None = None
    asset: str | None = None
    symbol: str | None = None
    wide: bool = False
    candles: bool = False
    symbol_from: str | None = None

    def of(self, path: Path) -> "ColumnChoice":
        """The choice for one file, with the symbol in its name. ImportRefused if that may be several, or none."""
        if self.symbol_from is None:
            return self
        pattern = re.escape(self.symbol_from).replace(r"\*", ".*")
        matches = (re.fullmatch(pattern.replace("SYMBOL", part), path.name) for part in ("(.+?)", "(.+)"))
        symbols = sorted({match[1] for match in matches if match})
        if len(symbols) != 1:
            readings = f" may say {' or '.join(symbols)}" if symbols else " does not fit"
            raise ImportRefused(
                f"The name of {path}{readings} by --symbol-from {self.symbol_from}. Write SYMBOL where names have the "
                "symbol, and * for what else differs."
            )
        return replace(self, symbol=symbols[0])


@dataclass(frozen=True, slots=True)
class TableFields:
    """The fields of a table that an import reads, and the names of the columns that it ignores.

    `values` are the fields of values by their name in the preset, with the name of the asset that all of their rows
    belong to, None for those of all assets; a wide file has several such groups. `symbol` and `decimals` are fields
    that describe assets, `switches` those of the preset. `own` says whether the service wrote the file: then rates are
    fractions. There, and in a `wide` file, empty values are no mistake. A `page` has values of buckets, and `count` is
    the field of the observations in each. The fields `same` must name the same asset in all rows. `candle` are the
    fields of open, high and low beside a close. Beside `opening`, times of opening, `time` has those of closing;
    without that, `begins` says that the name of `time` is one of those of opening, and `closes` that the value is a
    close. The fields `quotes` say in what prices are. `history` is the field of names if rows are of several.
    """

    time: str
    values: Sequence[tuple[str | None, Mapping[str, str]]]
    asset: str | None
    symbol: str | None
    ignored: Sequence[str]
    own: bool = False
    wide: bool = False
    same: Sequence[str] = ()
    decimals: str | None = None
    switches: Mapping[str, str] = field(default_factory=dict)
    page: bool = False
    count: str | None = None
    candle: Mapping[str, str] = field(default_factory=dict)
    opening: str | None = None
    begins: bool = False
    closes: bool = False
    quotes: Sequence[str] = ()
    history: str | None = None


def lay_out(table: Table, preset: Preset, choice: ColumnChoice) -> TableFields:
    """The layout of a table. ImportRefused, with the option that settles it, if columns are missing or if several could
    be meant."""
    _require_consistent(preset, choice)
    if preset.columns:
        return _as_preset(table, preset, choice)
    history = preset.history
    names = [_normal(name) for name in table.columns]
    if choice.value is None and _EXACT in names:
        choice = replace(choice, value=_EXACT)
    columns = tuple(name for name in names if name != _EXACT)
    if columns == _TOTALS and history not in TOTALS:
        raise ImportRefused(f"{table.path} has totals, of which none is of {history.slug}.")
    of_all = columns == _TOTALS or (history.by_asset is None and columns == ("observed_at", history.value))
    exported = of_all or columns == (*_VIEW, history.value)
    is_candles = tuple(names[-len(_CANDLES) :]) == _CANDLES
    page = (*names[: -len(_CANDLES)], "v") in _OWN if is_candles else tuple(names) in _OWN
    own = exported or page
    if own:
        time, value = ("observed_at", history.value) if exported else ("t", "c" if is_candles else "v")
        asset = choice.asset or ("asset_id" if "asset_id" in names else None)
        choice = replace(choice, time=time, value=choice.value or value, asset=asset)
    time, opening = _times(table, choice)
    if choice.wide:
        return _wide(table, time)
    value = _value(table, history, choice, time)
    candle = _candle(table, value)
    if choice.candles and len(candle) < len(_OF_CANDLE):
        raise ImportRefused(f"{table.path} has no columns open, high and low. Leave out --candles.")
    asset = None if choice.symbol is not None or history.by_asset is None else _asset(table, history, choice.asset)
    symbol = table.fields[names.index("symbol")] if asset is not None and names.count("symbol") == 1 else None
    count = table.fields[names.index("n")] if page and is_candles else None
    values = {**(candle if choice.candles else {}), "value": value}
    ignored = [] if own else table.unread({time, opening, *candle.values(), value, asset, symbol})
    same = _candidates(table, _DISTINCT if choice.asset is None else (_normal(choice.asset),)) if asset is None else ()
    require_header(table, map(table.title, (time, value)))
    return TableFields(
        time, [(choice.symbol, values)], asset, None if symbol == asset else symbol, ignored, own,
        same=same, page=page, count=count, candle=candle, opening=opening,
        begins=not opening and time in _candidates(table, _OPENINGS), closes=value in _candidates(table, _CLOSES),
        quotes=[one for one in _candidates(table, _QUOTES) if history is PRICES and one not in (value, asset)],
        history=table.fields[names.index("history")] if columns == _TOTALS else None,
    )  # fmt: skip


def _times(table: Table, choice: ColumnChoice) -> tuple[str, str | None]:
    """The field of times; of those of closing, if there are also those of opening, and then the field of these."""
    opening, closing = (_candidates(table, names) for names in (_OPENINGS, _CLOSINGS))
    if len(opening) == len(closing) == 1 and (
        choice.time is None or _field(table, "time", choice.time, ()) in (*opening, *closing)
    ):
        return closing[0], opening[0]
    return _field(table, "time", _time_named(table, choice), TIMES), None


def _value(table: Table, history: History, choice: ColumnChoice, time: str) -> str:
    """The field of values: as the caller says, or the column named as the symbol, or one with a usual name, or the only
    one besides the time."""
    named = choice.value
    if named is None and choice.symbol is not None:
        others = [column for column, field in zip(table.columns, table.fields, strict=True) if field != time]
        own = [column for column in others if column.casefold() == choice.symbol.casefold()]
        named = next(iter(own or (others if len(others) == 1 else ())), None)
    plain = history.name.removesuffix("_usd")
    own_names = (history.value, history.name, plain, f"{plain}_usd", *_OF_HISTORY.get(history.name, ()))
    rates = [name for name in table.columns if may_be_percent(history) and re.search("apy|apr|rate", name.lower())]
    cure = f"{_CURES['value']} Rates may be: {', '.join(rates)[:200]}." if rates else _CURES["value"]
    return field_of(table, "value", named, (*_VALUES, *own_names), "--value", cure)


def _candle(table: Table, value: str) -> Mapping[str, str]:
    """The fields of open, high and low, as far as a file has them besides its close."""
    fields = {name: [one for one in _candidates(table, names) if one != value] for name, names in _OF_CANDLE.items()}
    is_close = not any(value in _candidates(table, names) for names in _OF_CANDLE.values())
    return {name: own[0] for name, own in fields.items() if len(own) == 1 and is_close}


def require_header(table: Table, names: Iterable[str]) -> None:
    """ImportRefused if names of columns are data: then the first row would be lost."""
    for name in names if table.has_header else ():
        if re.fullmatch(r"[0-9][-0-9.:/, TZ]*", name):
            raise ImportRefused(
                f"The first {table.row_label} of {table.path} seems to be data, such as {name!r}. Name all columns, in "
                "their order, such as with --columns time,open,high,low,close."
            )


def _as_preset(table: Table, preset: Preset, choice: ColumnChoice) -> TableFields:
    """The layout with the columns that a preset names, unless the caller names others."""
    said = {"time": choice.time, "asset": choice.asset}
    named = {**preset.columns, **{role: name for role, name in said.items() if name is not None}}
    fields = {role: _field(table, role, name, ()) for role, name in named.items()}
    switches = {value: _field(table, value, name, ()) for value, name in preset.switches.items()}
    values = {name: fields[name] for name in preset.histories}
    ignored = table.unread({*fields.values(), *switches.values()})
    described = fields["symbol"], fields["decimals"]
    return TableFields(
        fields["time"], [(None, values)], fields["asset"], described[0], ignored,
        decimals=described[1], switches=switches,
    )  # fmt: skip


def _time_named(table: Table, choice: ColumnChoice) -> str | None:
    """The name of the column of times: as the caller says, or else that of the index of a data frame, first in text
    and last in Parquet, if no other may be meant."""
    if choice.time is None and not _candidates(table, TIMES):
        return next((name for name in (table.columns[0], table.columns[-1]) if _normal(name) in _INDEX), None)
    return choice.time


def _require_consistent(preset: Preset, choice: ColumnChoice) -> None:
    """ImportRefused if options contradict each other or what is imported."""
    history = preset.history
    symbol = "--symbol-from" if choice.symbol_from else "--symbol"
    named = {symbol: choice.symbol, "--asset": choice.asset, "--wide": choice.wide or None, "--value": choice.value}
    options = [option for option, value in named.items() if value is not None and option != "--value"]
    said = [option for option, value in named.items() if value is not None and option != "--asset"]
    if preset.columns and said:
        raise ImportRefused(f"`import {preset.name}` knows the columns of values and assets. Leave out {said[0]}.")
    if history.by_asset is None and options:
        raise ImportRefused(f"The history {history.slug} has no assets. Leave out {options[0]}.")
    if len(options) > 1 and options != ["--symbol", "--asset"]:
        raise ImportRefused(f"{options[0]} and {options[1]} exclude each other. Leave out the one that does not apply.")
    if choice.candles and (preset.columns or choice.wide):
        raise ImportRefused("Candles need columns open, high, low and close. Leave out --candles.")
    if choice.wide and choice.value is not None:
        raise ImportRefused("With --wide each column but the time is an asset. Leave out --value.")


def _wide(table: Table, time: str) -> TableFields:
    columns = {
        field: column
        for column, field in zip(table.columns, table.fields, strict=True)
        if field != time and column.strip()
    }
    for used in columns:
        _require_type(table, used)
    if not columns:
        raise ImportRefused(f"{table.path} has no column but the time. With --wide each other column is an asset.")
    values = [(column, {"value": field}) for field, column in columns.items()]
    begins = time in _candidates(table, _OPENINGS)
    return TableFields(time, values, None, None, table.unread({time, *columns}), wide=True, begins=begins)


def _asset(table: Table, history: History, named: str | None) -> str | None:
    if named is None and history.total and not _candidates(table, _ASSETS):
        return None
    if named is None and "asset_id" in map(_normal, table.columns):
        named = "asset_id"
    return _field(table, "asset", named, _ASSETS)


def _field(table: Table, role: str, named: str | None, synonyms: Collection[str]) -> str:
    return field_of(table, role, named, synonyms, f"--{role}", _CURES.get(role, ""))


def field_of(table: Table, role: str, named: str | None, synonyms: Collection[str], option: str, cure: str) -> str:
    """As `column_of`, for a role that there must be."""
    chosen = column_of(table, role, named, synonyms, option)
    if chosen is None:
        shown = ", ".join(table.columns)[:200]
        require_header(table, table.columns)
        if table.has_header and role == "time":
            cure += " If lines come before the names of columns, say --skip; if none has them, say --columns with all."
        raise ImportRefused(f"{table.path} has the columns {shown!r}, and none has a usual name of the {role}. {cure}")
    return chosen


def column_of(table: Table, role: str, named: str | None, synonyms: Collection[str], option: str) -> str | None:
    """The field of a role: that of the column `named`, or else of the only column with one of the usual names, if any.

    ImportRefused if there is no such column, or if several could be meant; `option` is the one that names the column.
    """
    fields = _candidates(table, synonyms if named is None else (_normal(named),))
    exact = [field for field in fields if table.title(field) == named]
    fields = exact if len(exact) == 1 else fields
    columns = [table.title(field) for field in fields]
    if len(fields) > 1 and named is None and len(set(columns)) == len(columns):
        # Not each number beside a price is one: `v` may be a volume.
        closes = [name for name in columns if _normal(name) in _CLOSES]
        such = next(iter(closes if role == "value" else columns[-1:]), None)
        raise ImportRefused(
            f"{table.path} has several columns that could be the {role}: {', '.join(columns)}. Name it with {option}"
            f"{f', such as {such!r}' if such else ''}."
        )
    if len(fields) > 1:
        raise ImportRefused(f"{table.path} has several columns {columns[0]!r}. Give each column a name of its own.")
    if not fields and named is not None:
        raise ImportRefused(f"{table.path} has no column {named!r}; it has {', '.join(table.columns)[:200]!r}.")
    if fields:
        _require_type(table, fields[0])
        if role == "time" and table.types.get(table.title(fields[0])) == pl.Float32:
            raise ImportRefused(f"The times of {table.path} are of type Float32, in which they are rounded to minutes.")
    return fields[0] if fields else None


_CURES = {
    "time": "Name it with --time.",
    "value": "Name it with --value; if each column is an asset, say --wide.",
    "asset": "Name it with --asset; if the file is of one asset, say --symbol and its symbol; if each column is an "
    "asset, say --wide.",
}


def _candidates(table: Table, names: Collection[str]) -> list[str]:
    return [
        field
        for column, field in zip(table.columns, table.fields, strict=True)
        if _normal(column) in names or _normal(_HUMP.sub("_", column)) in names
    ]


def _normal(name: str) -> str:
    return re.sub(r"[-. ]", "_", re.sub(r'["<>]', "", name).strip().lower())


def _require_type(table: Table, field: str) -> None:
    name = table.title(field)
    dtype = table.types.get(name)
    if dtype is not None and not is_readable(dtype):
        raise ImportRefused(
            f"Column {name} of {table.path} is of type {dtype}, which is neither text, number nor time."
        )
