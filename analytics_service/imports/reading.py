"""Reads the rows of a file of one history: asset, second and value of each, or the reason for its rejection.

What the file leaves open is never guessed: the file is refused with the readings and the option that chooses.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

import polars as pl

from analytics_service.errors import ImportRefused
from analytics_service.imports.layout import Layout
from analytics_service.imports.names import AssetNames, Unnamed
from analytics_service.imports.numerals import Mark, NumberRules, Shape, read_numbers
from analytics_service.imports.tables import FAULTS, Table
from analytics_service.imports.times import Kind, TimeRules, last_second, mixed, order_that_fits, read_times
from analytics_service.market.kinds import DECIMAL, RATE_LIMIT, Rate
from analytics_service.store.histories import NET_TVL, UTILIZATION, History

_GOOD = {"asset": pl.UInt32(), "observed_at": pl.UInt32(), "value": DECIMAL}


@dataclass(frozen=True, slots=True)
class ReadingRules:
    """How the files of an import are read. `fraction` says that rates of 1 and more are fractions; `at` is the present
    instant: observations more than a day later are refused."""

    history: History
    times: TimeRules
    numbers: NumberRules
    fraction: bool
    at: datetime

    @property
    def is_ratio(self) -> bool:
        """Whether values may be in percent."""
        return isinstance(self.history.kind, Rate) or self.history is UTILIZATION


@dataclass(slots=True)
class ReadFile:
    """A file that was read: its good rows (asset code, observed_at, value), its counts of rows, and how its times and
    numbers are written, each with the first line that is written so. `named` has the first asset in each field that
    must name the same asset in all rows."""

    table: Table
    layout: Layout
    rules: ReadingRules
    good: list[pl.DataFrame] = field(default_factory=lambda: [pl.DataFrame(schema=_GOOD)])
    read: int = 0
    rejected: int = 0
    kinds: dict[Kind, tuple[int, str]] = field(default_factory=dict)
    shapes: dict[Shape, tuple[int, str]] = field(default_factory=dict)
    percents: int = 0
    dotted: tuple[int, str] | None = None
    pointed: bool = False
    above_one: tuple[int, str] | None = None
    named: dict[str, tuple[int, str]] = field(default_factory=dict)

    @property
    def zone(self) -> str:
        """The zone in which times without one were read, in words after a comma; empty without such times."""
        return f", zone {self.rules.times.zone}" if {Kind.LOCAL, Kind.DATE} & set(self.kinds) else ""

    @property
    def notation(self) -> str:
        """How numbers are written, in words after a comma; empty for plain numbers."""
        numbers = self.rules.numbers
        comma = ", decimal comma" if numbers.mark is Mark.COMMA else ""
        thousands = ", with marks of thousands" if {Shape.GROUPED, Shape.SPACED} & set(self.shapes) else ""
        unit = ", in percent" if self.percents or numbers.percent else ", as fractions (0.05 means 5 %)"
        return f"{comma}{thousands}{unit if self.rules.is_ratio else ''}"


def read_file(
    file: ReadFile, names: AssetNames, reject: Callable[[pl.DataFrame], None], advance: Callable[[int], None]
) -> None:
    """Read all rows of a file. `reject` is called with blocks of bad rows (line, the file's fields, reason) in order.

    ImportRefused when the file can be read in two ways, or not at all.
    """
    table, layout, rules = file.table, file.layout, file.rules
    _require_distinct(table, layout, names)
    for block, size in table.blocks():
        rows = table.filled(block)
        times = read_times(rows[layout.time], rules.times)
        note_times(file, rows, layout.time, times, rules.times)
        _require_same(file, rows, rules.history)
        for values, asset in layout.values.items():
            bad = _add(file, rows, times, (values, asset), names)
            if bad.height:
                reject(bad)
        advance(size)
    _require_clear(file, rules)


def _add(
    file: ReadFile, rows: pl.DataFrame, times: pl.DataFrame, column: tuple[str, str | None], names: AssetNames
) -> pl.DataFrame:
    """Add the rows of a column of values, whose asset is named if all are of the same. Returns the bad ones."""
    (values, asset), rules = column, file.rules
    numbers = read_numbers(rows[values], rules.numbers)
    codes, faults = _codes(file.layout, rows, asset, names)
    read = rows.select("line", "extra", *file.table.fields).with_columns(
        times["second"], *numbers, pl.col(file.layout.time).alias("time"), pl.col(values).alias("written")
    )
    read = read.with_columns(times["kind"], times["twice"], asset=codes, asset_fault=faults)
    if file.layout.own or file.layout.wide:
        read = read.filter(pl.col("written").str.strip_chars() != "")
    _note_numbers(file, read, rules)
    reason = _reason(rules)
    judged = read.with_columns(reason=pl.format("column {}: {}", pl.lit(asset), reason) if file.layout.wide else reason)
    good = judged.filter(pl.col("reason").is_null())
    file.good.append(good.select("asset", pl.col("second").cast(pl.UInt32).alias("observed_at"), "value"))
    file.read += read.height
    bad = judged.filter(pl.col("reason").is_not_null())
    file.rejected += bad.height
    last = file.table.fields[-1]
    rest = pl.concat_str(pl.lit(file.table.delimiter), "extra")
    whole = pl.when(pl.col("extra").is_in(["", *FAULTS])).then(last).otherwise(pl.concat_str(last, rest))
    return bad.with_columns(whole.alias(last)).select("line", *file.table.fields, "reason")


def _codes(layout: Layout, rows: pl.DataFrame, asset: str | None, names: AssetNames) -> tuple[pl.Series, pl.Series]:
    """The code of the asset of each row, and why a row has none."""
    if layout.asset is None:
        code = names.total if asset is None else names.code(asset)
        return _repeated(code, rows.height)
    keys = [layout.asset, *([layout.symbol] if layout.symbol else [])]
    distinct = rows.select(keys).unique(maintain_order=True)
    codes = [_code(layout, names, *row) for row in distinct.iter_rows()]
    table = distinct.with_columns(
        pl.Series("code", [None if isinstance(code, Unnamed) else code for code in codes], pl.UInt32),
        pl.Series("fault", [code.reason if isinstance(code, Unnamed) else None for code in codes], pl.String),
    )
    joined = rows.select(keys).join(table, on=keys, how="left", maintain_order="left")
    return joined["code"], joined["fault"]


def _code(layout: Layout, names: AssetNames, name: str, symbol: str = "") -> int | Unnamed:
    if name.strip():
        return names.code(name, symbol)
    return names.total if layout.own else Unnamed("the asset is empty")


def _repeated(code: int | Unnamed, count: int) -> tuple[pl.Series, pl.Series]:
    reason, number = (code.reason, None) if isinstance(code, Unnamed) else (None, code)
    return pl.Series([number] * count, dtype=pl.UInt32), pl.Series([reason] * count, dtype=pl.String)


def _reason(rules: ReadingRules) -> pl.Expr:
    """The first reason for rejecting a row; null for a good row."""
    time, value, written = pl.col("time").str.strip_chars(), pl.col("value"), pl.col("written").str.strip_chars()
    # Compared as text: a number that rounds to zero may be negative, and -0 is not.
    is_negative = written.str.contains(r"^(?:\$\s*)?-[^eE]*[1-9]") & value.is_not_null()
    too_large = f"is above {RATE_LIMIT}" if isinstance(rules.history.kind, Rate) else "is not below 10^20"
    above = value > RATE_LIMIT if isinstance(rules.history.kind, Rate) else pl.lit(value=False)
    extra = pl.col("extra")
    many = "the row has more fields than the first line; a field with the delimiter in it needs quotes"
    unsplit = {fault: extra == fault for fault in FAULTS} | {many: extra != ""}
    reasons = {
        "the time is empty": time == "",
        "the time is negative": time.str.contains(r"^-[0-9]"),
        "the time is in the future": pl.col("second") > last_second(rules.at),
        "the time is before 1970": pl.col("second") < 0,
        f"{rules.times.zone} has this time twice, or never; write it with an offset": pl.col("twice"),
        "the time cannot be read; write it such as 2026-01-31T12:00:00Z": pl.col("second").is_null(),
        "the value is empty": written == "",
        "the value is in percent": pl.col("percent") & (not rules.is_ratio),
        f"the value {too_large}": above | pl.col("large"),
        "the value is not a number": value.is_null(),
        "the value is negative": is_negative & (rules.history is not NET_TVL),
    }
    fault, rest = (
        [pl.when(applies).then(pl.lit(message)) for message, applies in messages.items()]
        for messages in (unsplit, reasons)
    )
    return pl.coalesce(*fault, "asset_fault", *rest)


def _require_distinct(table: Table, layout: Layout, names: AssetNames) -> None:
    """ImportRefused if several columns of values are of the same asset."""
    columns: dict[int, str] = {}
    for column in layout.values.values():
        code = None if column is None else names.code(column)
        if isinstance(code, int) and columns.setdefault(code, str(column)) is not column:
            raise ImportRefused(
                f"The columns {columns[code]!r} and {column!r} of {table.path} are of the same asset. Keep one of them."
            )


def _require_same(file: ReadFile, rows: pl.DataFrame, history: History) -> None:
    """ImportRefused if a file that is to be of one asset, or of the sum over all, names several."""
    for column in file.layout.same:
        texts = rows[column].str.strip_chars()
        for _, index in _firsts(texts.str.to_lowercase().replace("", None)):
            seen = rows["line"][index], texts[index]
            first = file.named.setdefault(column, seen)
            if first[1].lower() != seen[1].lower():
                cure = (
                    "Leave out --symbol, which says that it is of one."
                    if history.by_asset
                    else f"The history {history.slug} has no assets: import only rows of the sum over all."
                )
                table = file.table
                raise ImportRefused(
                    f"{table.path} is of several assets, {table.where(first)} and {table.where(seen)}. {cure}"
                )


class Noted(Protocol):
    """A file of which is noted how its times are written."""

    table: Table
    kinds: dict[Kind, tuple[int, str]]


def note_times(file: Noted, rows: pl.DataFrame, column: str, times: pl.DataFrame, rules: TimeRules) -> None:
    """Note how times of a column are written. ImportRefused if that leaves open what they mean."""
    for name, index in _firsts(times["kind"]):
        file.kinds.setdefault(Kind(name), (rows["line"][index], rows[column][index]))
    kinds, where, path = file.kinds, file.table.where, file.table.path
    if mixed(list(kinds)):
        both = " and ".join(f"{kind} ({where(seen)})" for kind, seen in list(kinds.items())[:2])
        raise ImportRefused(f"{path} mixes {both}. Write all times in one way.")
    if Kind.SMALL in kinds:
        raise ImportRefused(
            f"The times of {path} are too small to tell their unit: {where(kinds[Kind.SMALL])}. If they are dates such "
            "as 20260131, say --date-order ymd; if days as spreadsheets count them, save the column as dates; if unix "
            "times of before 1973-03, say --time-unit."
        )
    if Kind.ORDERLESS in kinds and rules.order not in ("dmy", "mdy"):
        fits = order_that_fits(rows[column])
        both = "Say which with --date-order dmy or --date-order mdy."
        raise ImportRefused(
            f"{path} has dates in which the day or the month may come first, {where(kinds[Kind.ORDERLESS])}. "
            f"{f'Its first rows allow --date-order {fits} only; say so, if it is right.' if fits else both}"
        )
    for kind in (Kind.LOCAL, Kind.DATE, Kind.ORDERLESS):
        if kind in kinds and rules.zone is None:
            raise ImportRefused(
                f"{path} has {kind}, {where(kinds[kind])}. Say in which zone they are: --zone UTC, or such as "
                "--zone Europe/London."
            )


def _note_numbers(file: ReadFile, rows: pl.DataFrame, rules: ReadingRules) -> None:
    """Note how numbers are written. ImportRefused where decimals follow a comma and nobody said so."""
    for name, index in _firsts(rows["shape"]):
        file.shapes.setdefault(Shape(name), (rows["line"][index], rows["written"][index]))
    if Shape.COMMA in file.shapes:
        raise ImportRefused(
            f"{file.table.path} has numbers that make sense only if decimals follow a comma, "
            f"{file.table.where(file.shapes[Shape.COMMA])}. If so, say --decimal-comma."
        )
    if file.table.delimiter == ";" and rules.numbers.mark is None:
        # Such files come from where decimals follow a comma, and a point may separate thousands.
        decimals = rows.filter(pl.col("written").str.contains(".", literal=True) & pl.col("shape").is_null())
        groups = decimals["written"].str.strip_chars().str.contains(r"^[+-]?[1-9][0-9]{0,2}(\.[0-9]{3})+$")
        file.pointed |= not groups.all()
        if groups.any() and file.dotted is None:
            file.dotted = decimals.filter(groups)["line"][0], decimals.filter(groups)["written"][0]
    file.percents += int(rows["percent"].sum())
    if rules.is_ratio and file.above_one is None:
        above = rows.filter(pl.col("value") >= 1)
        file.above_one = (above["line"][0], above["written"][0]) if above.height else None


def _firsts(names: pl.Series) -> Iterator[tuple[str, int]]:
    """Each distinct name, and its first index."""
    named = names.to_frame("name").with_row_index("index").filter(pl.col("name").is_not_null())
    yield from named.group_by("name").agg(pl.col("index").min()).sort("index").iter_rows()


def _require_clear(file: ReadFile, rules: ReadingRules) -> None:
    """ImportRefused if numbers of the file can be read in two ways."""
    path, where, shapes = file.table.path, file.table.where, file.shapes
    if Shape.EITHER in shapes and Shape.GROUPED not in shapes:
        raise ImportRefused(
            f"{path} has numbers in which the comma may separate thousands or decimals, "
            f"{where(shapes[Shape.EITHER])}. Say which with --decimal-point or --decimal-comma."
        )
    if file.dotted and not file.pointed:
        raise ImportRefused(
            f"{path} has semicolons between fields, so the points of its numbers may separate thousands or decimals, "
            f"{where(file.dotted)}. Say which with --decimal-point or --decimal-comma."
        )
    if 0 < file.percents < file.read and rules.is_ratio and not rules.numbers.percent:
        raise ImportRefused(f"{path} has values with and without %. Write all in one way, or say --percent.")
    is_open = not (file.layout.own or file.percents or rules.numbers.percent or rules.fraction)
    if rules.is_ratio and file.above_one and is_open:
        raise ImportRefused(
            f"{path} has rates that may be fractions above 1 or percents, {where(file.above_one)}. Say which with "
            "--percent or --fraction."
        )
