"""Reads the rows of a file of history: asset, second and values of each, or the reason for its rejection.

What the file leaves open is never guessed: the file is refused with the readings and the option that chooses.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Protocol

import polars as pl

from analytics_service.errors import ImportRefused
from analytics_service.imports import judging
from analytics_service.imports.holding import (
    APART,
    CANDLE,
    LEAST,
    Holding,
    Stamp,
    candles,
    interval_of,
    least_distance,
    shifted,
)
from analytics_service.imports.judging import first_reason, is_empty, may_be_percent
from analytics_service.imports.layout import ColumnChoice, TableFields
from analytics_service.imports.names import DOLLARS, AssetNames, Named, pair_fault
from analytics_service.imports.numerals import Mark, NumberRules, NumberStyle, read_numbers
from analytics_service.imports.presets import Preset
from analytics_service.imports.tables import Table, TableRules
from analytics_service.imports.times import (
    CALENDAR,
    ORDERS,
    TimeRules,
    TimeStyle,
    at_midnight,
    fractions,
    last_second,
    mixed,
    orders_that_fit,
    read_times,
)
from analytics_service.market.instants import DAY, unix_second
from analytics_service.market.kinds import DECIMAL, RATE_LIMIT
from analytics_service.store.datasets.histories import PRICES

_FIRST = {"dmy": "day", "mdy": "month", "ymd": "year"}
_FLAG = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class HistoryRequest:
    """Files of histories to import, and what the caller says about them.

    `fraction` says that rates are fractions. `assets` is an assets file. With `new_assets`, assets that neither it nor
    the store has are made. With `skip_invalid` the good rows are imported even if others are bad. With `last_wins` the
    later of two rows that disagree counts.
    """

    preset: Preset
    files: Sequence[Path]
    choice: ColumnChoice = field(default_factory=ColumnChoice)
    times: TimeRules = field(default_factory=TimeRules)
    numbers: NumberRules = field(default_factory=NumberRules)
    fraction: bool = False
    assets: Path | None = None
    new_assets: bool = False
    skip_invalid: bool = False
    holding: Holding = field(default_factory=Holding)
    last_wins: bool = False
    tables: TableRules = field(default_factory=TableRules)

    @property
    def is_ratio(self) -> bool:
        """Whether values may be in percent."""
        return may_be_percent(self.preset.history)

    @property
    def is_price(self) -> bool:
        """Whether values are prices whose columns no preset names."""
        return self.preset.history is PRICES and not self.preset.columns


@dataclass(slots=True)
class ReadFile:
    """A file that was read: its good rows (asset code, observed_at, values), its counts of rows, and how its times and
    numbers are written, each with the first line that is written so. Rows without a value are `empty`, not `read`.
    `named` has the first asset in each field that must name the same asset in all rows, and the file that names it;
    files of one import share it. `at` is the present instant: observations more than a day later are bad. `interval` is
    that which a time names, if it matters; `pages` are the distinct times of a page of history. `midnight` says whether
    all clocks show it, `apart` whether each date may name a week or month, and `foreign` is the first price that is not
    in USD."""

    table: Table
    layout: TableFields
    rules: HistoryRequest
    at: datetime
    good: list[pl.DataFrame] = field(default_factory=list)
    read: int = 0
    rejected: int = 0
    empty: int = 0
    kinds: dict[TimeStyle, tuple[int, str]] = field(default_factory=dict)
    shapes: dict[NumberStyle, tuple[int, str]] = field(default_factory=dict)
    percents: int = 0
    dotted: tuple[int, str] | None = None
    pointed: bool = False
    first: tuple[int, str] | None = None
    named: dict[str, tuple["ReadFile", tuple[int, str]]] = field(default_factory=dict)
    interval: str | None = None
    pages: set[int] = field(default_factory=set)
    midnight: bool = True
    apart: bool = False
    foreign: tuple[str, tuple[int, str]] | None = None

    def __post_init__(self) -> None:
        values = dict.fromkeys(self.rules.preset.histories, DECIMAL)
        self.good.append(pl.DataFrame(schema={"asset": pl.UInt32(), "observed_at": pl.UInt32(), **values}))

    @property
    def stamp(self) -> Stamp | None:
        """What times name, where that matters: a time of opening and one of closing say it by themselves."""
        return None if self.layout.opening else self.rules.holding.stamp or ("begin" if self.layout.page else None)

    @property
    def is_clocked(self) -> bool:
        """Whether times name more than a day."""
        return not set(self.kinds) <= set(CALENDAR)

    @property
    def calendar(self) -> str:
        """The zone whose days and months are those of intervals."""
        is_local = set(self.kinds) <= {TimeStyle.LOCAL, *CALENDAR}
        return self.rules.times.zone or "UTC" if is_local else "UTC"

    @property
    def zone(self) -> str:
        """The zone in which times without one were read, in words after a comma; empty without such times."""
        return f", zone {self.rules.times.zone}" if {TimeStyle.LOCAL, *CALENDAR} & set(self.kinds) else ""

    @property
    def notation(self) -> str:
        """How numbers are written, in words after a comma; empty for plain numbers."""
        numbers = self.rules.numbers
        comma = ", decimal comma" if numbers.mark is Mark.COMMA else ""
        thousands = ", with marks of thousands" if {NumberStyle.GROUPED, NumberStyle.SPACED} & set(self.shapes) else ""
        is_percent = self.percents or any(_numbers(self, field).percent for field in self.layout.values[0][1].values())
        unit = ", in percent" if is_percent else ", as fractions (0.05 means 5 %)"
        return f"{comma}{thousands}{unit if self.rules.is_ratio else ''}"


def read_history(
    file: ReadFile, names: AssetNames, reject: Callable[[pl.DataFrame], None], advance: Callable[[int], None]
) -> None:
    """Read all rows of a file. `reject` is called with blocks of bad rows (line, the file's fields, reason) in order.

    ImportRefused when the file can be read in two ways, or not at all.
    """
    table, layout = file.table, file.layout
    _require_distinct(table, layout, names)
    for block, size in table.blocks():
        rows = _timed(file, table.filled(block))
        _require_same(file, rows)
        _note_quotes(file, rows)
        if layout.page:
            file.pages.update(rows["second"].drop_nulls())
        for asset, fields in layout.values:
            good, bad = _judged(file, rows, asset, fields, names)
            file.empty += rows.height - good.height - bad.height
            file.read += good.height + bad.height
            file.rejected += bad.height
            file.good.append(good.select("asset", "observed_at", *fields, *_others(file, good)))
            if bad.height:
                reject(table.rejected(bad))
        advance(size)
    _require_clear(file)
    _require_assets(file, names)
    _require_stamp(file)
    file.interval = _interval(file)
    file.good[1:] = [_held(file, rows) for rows in file.good[1:]]


def placed_rows(file: ReadFile, names: AssetNames) -> Iterator[pl.DataFrame]:
    """The rows of a file that was read, once more: with line and fields, asset, observed_at, tick and values."""
    for block, _ in file.table.blocks():
        rows = _timed(file, file.table.filled(block))
        for asset, fields in file.layout.values:
            yield _held(file, _judged(file, rows, asset, fields, names)[0])


def _timed(file: ReadFile, rows: pl.DataFrame) -> pl.DataFrame:
    """The rows with their `time` as it is written, `second`, `twice`, `begin` and `tick`, nanoseconds."""
    column, rules = file.layout.time, file.rules.times
    assets = rows[file.layout.asset] if file.layout.asset else None
    times = read_times(rows[column], rules, assets)
    note_times(file, rows, column, times, rules)
    if file.layout.closes:
        file.midnight &= at_midnight(rows[column], times)
    opening = file.layout.opening
    begin = read_times(rows[opening], rules, assets)["second"].alias("begin") if opening else times["begin"]
    tick = fractions(rows[column], times).alias("tick")
    return rows.with_columns(times["second"], times["twice"], begin, tick, time=column)


def _others(file: ReadFile, rows: pl.DataFrame) -> list[str]:
    """The other columns that matter for the rows of a block: what others would be costs memory."""
    begins = ["begin"] if file.stamp == "begin" or file.rules.choice.candles else []
    return [*begins, *(["tick"] if (rows["tick"] != 0).any() else [])]


def _judged(
    file: ReadFile, rows: pl.DataFrame, asset: str | None, fields: Mapping[str, str], names: AssetNames
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The good and the bad rows of columns of values, whose asset is named if all are of the same."""
    layout = file.layout
    if layout.history is not None:
        rows = rows.filter(pl.col(layout.history) == file.rules.preset.history.name)
    rows = rows.filter(~is_empty(fields.values()))
    if layout.count is not None:
        rows = rows.filter(pl.col(layout.count) != "0")
    rows = _with_assets(layout, rows, asset, names)
    for name, column in fields.items():
        numbers = read_numbers(rows[column], _numbers(file, column)).with_columns(rows["line"], written=rows[column])
        _note_numbers(file, numbers, file.rules)
        rows = rows.with_columns(numbers.select(pl.exclude("line").name.prefix(f"{name} ")))
    # Reasons are looked for only where there may be one.
    bad = rows.filter(_is_odd(file, fields)).with_columns(reason=_reason(file, fields)).drop_nulls("reason")
    good = rows.filter(~pl.col("line").is_in(bad["line"].implode())) if bad.height else rows
    seconds = pl.col("second").cast(pl.UInt32).alias("observed_at"), pl.col("begin").cast(pl.UInt32, strict=False)
    return good.with_columns(*seconds, *(_stored(layout, name) for name in fields)), bad


def _numbers(file: ReadFile, column: str) -> NumberRules:
    """How numbers of a column are read: a % sign in its name is one in each of them."""
    rules = file.rules
    is_percent = rules.is_ratio and "%" in file.table.title(column) and not (rules.fraction or file.layout.wide)
    return replace(rules.numbers, percent=True) if is_percent else rules.numbers


def _require_assets(file: ReadFile, names: AssetNames) -> None:
    """ImportRefused if what looks like the assets may be the ids of rows: whole numbers, another in each."""
    is_given = file.layout.asset is None or file.layout.own or file.rules.choice.asset or file.rules.preset.columns
    count = sum(rows.height for rows in file.good)
    if is_given or not 1 < count <= len(names.ids):
        return
    codes, seconds = (pl.concat([rows[name] for rows in file.good]).unique() for name in ("asset", "observed_at"))
    if len(codes) == count and len(seconds) > 1 and all(re.fullmatch(r"native;\d+", names.ids[n]) for n in codes):
        column = file.table.title(str(file.layout.asset))
        raise ImportRefused(
            f"{file.table.path} has another whole number as {column!r} in each row: ids of rows, or of assets? Say "
            f"--symbol if all is of one asset, or --asset and the column with the assets, such as --asset {column}."
        )


def _require_stamp(file: ReadFile) -> None:
    """ImportRefused if a value may hold at its time or at the end of an interval that begins then."""
    layout, table = file.layout, file.table
    if file.stamp is not None or layout.opening or not file.kinds:
        return
    distance = None
    if not file.is_clocked or (layout.closes and file.midnight):
        rows = pl.concat([block.select("asset", "observed_at") for block in file.good])
        distance = least_distance(rows["asset"], rows["observed_at"], file.calendar)
    file.apart = not file.is_clocked and (distance or 0) >= min(APART[kind] for kind in CALENDAR if kind in file.kinds)
    is_midnight = layout.closes and file.is_clocked and file.midnight and (distance is None or distance >= DAY)
    if layout.begins or is_midnight or ("open" in layout.candle and (file.is_clocked or file.apart)):
        first = table.where(next(iter(file.kinds.values())))
        raise ImportRefused(
            f"{table.path} has values at {', '.join(file.kinds)}, {first}, which may name the beginning of an "
            "interval, so that its value is known later, or its end. Say --stamp begin or --stamp end."
        )


def _interval(file: ReadFile) -> str | None:
    """The interval that a time of the file names, if that matters. ImportRefused if nothing tells it."""
    said, is_candle = file.rules.holding.interval, file.rules.choice.candles
    is_needed = file.stamp == "begin" or (file.stamp == "end" and is_candle)
    if said and not is_needed and file.rules.holding.stamp is None:
        raise ImportRefused(f"An interval changes nothing in {file.table.path}. Say --stamp begin or leave it out.")
    if not is_needed or said:
        return said if is_needed else None
    if file.layout.page:
        # Buckets may be shorter where clocks go forward, and must not reach into the next.
        starts = sorted(file.pages)
        interval = f"{min(end - start for start, end in pairwise(starts))}s" if len(starts) > 1 else None
    else:
        begins = [rows.select("asset", "begin") for rows in file.good[1:]]
        interval = interval_of(pl.concat(begins), file.calendar) if begins else None
    if interval is None and any(rows.height for rows in file.good):
        raise ImportRefused(
            f"{file.table.path} has one time of each asset, which does not tell how long an interval is. Say it, such "
            "as --interval 1d."
        )
    return interval


def _held(file: ReadFile, rows: pl.DataFrame) -> pl.DataFrame:
    """The rows at the seconds from which their values hold, each candle in four rows."""
    zone, observed_at = file.calendar, pl.col("observed_at")
    if file.interval and file.stamp == "begin":
        # The last interval may not be over yet.
        now = unix_second(file.at) + 1
        ends = shifted(rows["begin"], file.interval, zone).fill_null(now).clip(upper_bound=now) - 1
        rows = rows.with_columns(observed_at=pl.max_horizontal(ends.cast(pl.UInt32), "begin"))
    elif file.interval:
        ends = rows["observed_at"].cast(pl.Int64) + 1
        rows = rows.with_columns(begin=shifted(ends, f"-{file.interval}", zone).cast(pl.UInt32))
    if not file.rules.choice.candles:
        return rows.drop("begin", strict=False)
    if file.layout.opening:
        # Of 00:00 to 01:00, the last second belongs to the next candle.
        is_next = (observed_at > pl.col("begin")) & ((observed_at - pl.col("begin")) % 60 == 0)
        rows = rows.with_columns(observed_at=observed_at - is_next.cast(pl.UInt32))
    if rows.height and not (rows["observed_at"].cast(pl.Int64) - rows["begin"] >= LEAST - 1).all():
        raise ImportRefused(f"{file.table.path} has candles of less than {LEAST} seconds. Leave out --candles.")
    return candles(rows).drop("begin")


def _stored(layout: TableFields, name: str) -> pl.Expr:
    """A value; null where its switch says that 0 is none."""
    value = pl.col(f"{name} value").alias(name)
    switch = layout.switches.get(name)
    return value if switch is None else pl.when(_flag(switch) | (value != 0)).then(value)


def _flag(column: str) -> pl.Expr:
    """True or False, written in any case, as a Boolean; null for anything else."""
    return pl.col(column).str.strip_chars().str.to_lowercase().replace_strict(_FLAG, default=None)


def _is_odd(file: ReadFile, fields: Mapping[str, str]) -> pl.Expr:
    """Whether there may be a reason for rejecting a row."""
    second, values = pl.col("second"), pl.col(*(f"{name} value" for name in fields))
    limit = RATE_LIMIT if file.rules.is_ratio else None
    return pl.any_horizontal(
        pl.col("extra") != "",
        pl.col("asset").is_null(),
        second.is_null() | pl.col("begin").is_null() | ~second.is_between(0, last_second(file.at)),
        values.is_null() | (values <= 0) | (values > limit if limit else pl.lit(value=False)),
        *(pl.col(f"{name} percent") for name in fields),
        *(_flag(switch).is_null() for switch in file.layout.switches.values()),
    )


def _reason(file: ReadFile, fields: Mapping[str, str]) -> pl.Expr:
    """The first reason for rejecting a row; null for a good row."""
    rules, layout = file.rules, file.layout
    reasons = [first_reason(judging.split_reasons()), pl.col("fault")]
    reasons.append(judging.time_reason(rules.times, file.at))
    reasons.append(first_reason({"the time of opening cannot be read": pl.col("begin").is_null()}))
    for name, column in fields.items():
        history = rules.preset.history if name in CANDLE else rules.preset.histories[name]
        reason = first_reason(judging.value_reasons(history, f"{name} "))
        is_one = len(fields) == len(layout.values) == 1
        reasons.append(reason if is_one else pl.format("column {}: {}", pl.lit(file.table.title(column)), reason))
    for switch in layout.switches.values():
        reasons.append(first_reason({f"{file.table.title(switch)} is neither True nor False": _flag(switch).is_null()}))
    return pl.coalesce(reasons)


def _with_assets(layout: TableFields, rows: pl.DataFrame, asset: str | None, names: AssetNames) -> pl.DataFrame:
    """The rows with the code of the `asset` of each, or the `fault` for which it has none."""
    if layout.asset is None:
        named = Named(names.total) if asset is None else names.named(asset)
        return rows.with_columns(asset=pl.lit(named.code, pl.UInt32), fault=pl.lit(named.fault, pl.String))
    keys = [column for column in (layout.asset, layout.symbol, layout.decimals) if column]
    distinct = rows.select(keys).unique(maintain_order=True)
    found = [
        Named(names.total) if layout.own and not name.strip() else names.named(name, *described)
        for name, *described in distinct.iter_rows()
    ]
    codes = pl.DataFrame(found, {"asset": pl.UInt32, "fault": pl.String}, orient="row")
    return rows.join(pl.concat([distinct, codes], how="horizontal"), on=keys, how="left", maintain_order="left")


def _require_distinct(table: Table, layout: TableFields, names: AssetNames) -> None:
    """ImportRefused if several columns of values are of the same asset."""
    columns: dict[int, str] = {}
    for column, _ in layout.values:
        code = None if column is None else names.named(column).code
        if code is not None and columns.setdefault(code, str(column)) is not column:
            raise ImportRefused(
                f"The columns {columns[code]!r} and {column!r} of {table.path} are of the same asset. Keep one of them."
            )


def _require_same(file: ReadFile, rows: pl.DataFrame) -> None:
    """ImportRefused if files that are to be of one asset, or of the sum over all, name several."""
    history = file.rules.preset.history
    symbol = file.layout.values[0][0]
    for column in file.layout.same:
        title, texts = file.table.title(column), rows[column].str.strip_chars()
        for _, index in _firsts(texts.str.to_lowercase().replace("", None)):
            seen = rows["line"][index], texts[index]
            other, first = file.named.setdefault(f"{symbol},{title.lower()}", (file, seen))
            if first[1].lower() != seen[1].lower():
                cure = (
                    "Leave out --symbol, which says that all is of one."
                    if history.by_asset
                    else f"The history {history.slug} has no assets: import only rows of the sum over all."
                )
                both = f"{other.table.cite(first)} and {file.table.cite(seen)}"
                raise ImportRefused(f"There are several assets: {both}. {cure}")
            if file.rules.is_price and file.rules.choice.asset is None and (fault := pair_fault(seen[1])):
                raise ImportRefused(f"{file.table.cite(seen)}: {fault}.")
            if symbol is not None and file.rules.choice.asset is None and _is_other(symbol, title, seen[1]):
                raise ImportRefused(
                    f"{file.table.path} has another {title} than {symbol}, {file.table.where(seen)}. Leave out "
                    f"--symbol, or say --asset {title!r}, too, if all is of {symbol}."
                )


def _note_quotes(file: ReadFile, rows: pl.DataFrame) -> None:
    """Note the first price in something else than USD."""
    for column in file.layout.quotes if file.foreign is None else ():
        texts = rows[column].str.strip_chars()
        foreign = rows.select("line", text=texts).filter(~texts.str.to_lowercase().is_in([*DOLLARS, ""]))
        if foreign.height:
            file.foreign = file.table.title(column), foreign.row(0)


def require_dollars(files: Sequence[ReadFile]) -> None:
    """ImportRefused if a column says that prices are in something else than USD."""
    for file in files:
        if file.foreign is not None:
            title, seen = file.foreign
            raise ImportRefused(
                f"Prices are in USD, and column {title!r} of {file.table.path} says something else, "
                f"{file.table.where(seen)}. Convert them, or leave out such rows; if the column means something "
                "else, leave it out."
            )


def _is_other(symbol: str, title: str, text: str) -> bool:
    """Whether a column has the symbol of another asset; BTC/USDT is one of BTC."""
    names = symbol.casefold(), text.casefold()
    is_symbol = title.casefold() in ("symbol", "ticker", "asset") and not re.search("0x|;", "".join(names))
    return is_symbol and names[0] not in names[1] and names[1] not in names[0]


class FileRead(Protocol):
    """A file that is read: its counts of rows, and how its times are written, each with the first line of its kind."""

    table: Table
    read: int
    rejected: int
    kinds: dict[TimeStyle, tuple[int, str]]


def note_times(file: FileRead, rows: pl.DataFrame, column: str, times: pl.DataFrame, rules: TimeRules) -> None:
    """Note how times of a column are written. ImportRefused if that leaves open what they mean."""
    for name, index in _firsts(times["kind"]):
        file.kinds.setdefault(TimeStyle(name), (rows["line"][index], rows[column][index]))
    kinds, where, path = file.kinds, file.table.where, file.table.path
    if mixed(list(kinds)):
        both = " and ".join(f"{kind} ({where(seen)})" for kind, seen in list(kinds.items())[:2])
        raise ImportRefused(f"{path} mixes {both}. Write all times in one way.")
    if TimeStyle.SMALL in kinds:
        raise ImportRefused(
            f"The times of {path} are too small to tell their unit: {where(kinds[TimeStyle.SMALL])}. If they are dates "
            "such as 20260131, say --date-order ymd; if days as spreadsheets count them, save the column as dates; if "
            "unix times of before 1973-03, say --time-unit."
        )
    if TimeStyle.ROUNDED in kinds:
        raise ImportRefused(
            f"The times of {path} are in scientific notation, with too few digits: {where(kinds[TimeStyle.ROUNDED])}. "
            "Write them with all digits; a spreadsheet does so if the column has a number format without an exponent."
        )
    if TimeStyle.ORDERLESS in kinds and rules.order not in ("dmy", "mdy"):
        fits = orders_that_fit(rows[column]) or ORDERS
        which = " or ".join(f"--date-order {order}" for order in fits)
        firsts = " or ".join(_FIRST[order] for order in fits)
        raise ImportRefused(
            f"{path} has dates in which the {firsts} may come first, {where(kinds[TimeStyle.ORDERLESS])}. "
            + (
                f"Say which with {which}."
                if len(fits) > 1
                else f"Its first rows allow {which} only; say so, if it is right."
            )
        )
    for kind in (TimeStyle.LOCAL, TimeStyle.DATE, TimeStyle.MONTH, TimeStyle.ORDERLESS):
        if kind in kinds and rules.zone is None:
            raise ImportRefused(
                f"{path} has {kind}, {where(kinds[kind])}. Say in which zone they are: --zone UTC, or such as "
                "--zone Europe/London."
            )


def _note_numbers(file: ReadFile, rows: pl.DataFrame, rules: HistoryRequest) -> None:
    """Note how numbers are written. ImportRefused where decimals follow a comma and nobody said so."""
    for name, index in _firsts(rows["shape"]):
        file.shapes.setdefault(NumberStyle(name), (rows["line"][index], rows["written"][index]))
    if NumberStyle.COMMA in file.shapes:
        raise ImportRefused(
            f"{file.table.path} has numbers that make sense only if decimals follow a comma, "
            f"{file.table.where(file.shapes[NumberStyle.COMMA])}. If so, say --decimal-comma."
        )
    if file.table.delimiter == ";" and rules.numbers.mark is None:
        # Such files come from where decimals follow a comma, and a point may separate thousands.
        decimals = rows.filter(pl.col("written").str.contains(".", literal=True) & pl.col("shape").is_null())
        groups = decimals["written"].str.strip_chars().str.contains(r"^[+-]?[1-9][0-9]{0,2}(\.[0-9]{3})+$")
        file.pointed |= not groups.all()
        if groups.any() and file.dotted is None:
            file.dotted = decimals.filter(groups)["line"][0], decimals.filter(groups)["written"][0]
    file.percents += int(rows["percent"].sum())
    if file.first is None and rows["value"].count():
        file.first = rows.drop_nulls("value").select("line", "written").row(0)


def _firsts(names: pl.Series) -> Iterator[tuple[str, int]]:
    """Each distinct name, and its first index."""
    named = names.to_frame("name").with_row_index("index").filter(pl.col("name").is_not_null())
    yield from named.group_by("name").agg(pl.col("index").min()).sort("index").iter_rows()


def _require_clear(file: ReadFile) -> None:
    """ImportRefused if numbers of the file can be read in two ways."""
    path, where, shapes, rules = file.table.path, file.table.where, file.shapes, file.rules
    fields = [field for _, fields in file.layout.values for field in fields.values()]
    if NumberStyle.EITHER in shapes and NumberStyle.GROUPED not in shapes:
        raise ImportRefused(
            f"{path} has numbers in which the comma may separate thousands or decimals, "
            f"{where(shapes[NumberStyle.EITHER])}. Say which with --decimal-point or --decimal-comma."
        )
    if file.dotted and not file.pointed:
        raise ImportRefused(
            f"{path} has semicolons between fields, so the points of its numbers may separate thousands or decimals, "
            f"{where(file.dotted)}. Say which with --decimal-point or --decimal-comma."
        )
    if 0 < file.percents < file.read * len(file.layout.values[0][1]) and rules.is_ratio and not rules.numbers.percent:
        raise ImportRefused(f"{path} has values with and without %. Write all in one way, or say --percent.")
    is_said = rules.fraction or rules.preset.columns or all(_numbers(file, field).percent for field in fields)
    if rules.is_ratio and file.first and not (file.layout.own or file.percents or is_said):
        raise ImportRefused(
            f"{path} has rates that may be fractions, in which 0.05 means 5 %, or percents, {where(file.first)}. Say "
            "which with --percent or --fraction."
        )
