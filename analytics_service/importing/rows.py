"""Validates the rows of a file of one history."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import polars as pl

from analytics_service.importing.asset_names import AssetNames
from analytics_service.importing.column_mapping import (
    DOLLARS,
    WIDE_VALUE,
    ColumnChoice,
    ColumnMapping,
    map_columns,
)
from analytics_service.importing.numbers import (
    ValueRules,
    is_missing,
    parse_values,
    rules_of,
    valid_values,
    value_fault,
)
from analytics_service.importing.readers import SourceTable, open_table
from analytics_service.importing.time_parsing import (
    TimeRules,
    TimeStyle,
    future_fault,
    last_second,
    parse_times,
    time_fault,
)
from analytics_service.importing.timestamps import Timestamps
from analytics_service.market.sums import TOTAL
from analytics_service.store.datasets.histories import History

SHOWN = 5
"""How many rejected rows of a file a report shows."""
# The column of assets in a wide file.
_WIDE = "the names of columns"
# Ids of assets take four bytes in each row.
_ASSET = pl.Categorical()


@dataclass(frozen=True, slots=True)
class HistoryRequest:
    """Files of a history to import, with the options of the command.

    `assets` is an assets file. `new_assets` makes assets that neither it nor the store has. `last_wins` takes the later
    of conflicting rows. `skip_invalid` rejects invalid rows and imports the others.
    """

    history: History
    files: Sequence[Path]
    choice: ColumnChoice = field(default_factory=ColumnChoice)
    times: TimeRules = field(default_factory=TimeRules)
    stamps: Timestamps = field(default_factory=Timestamps)
    separator: str = ","
    comma: bool = False
    percent: bool = False
    assets: Path | None = None
    new_assets: bool = False
    last_wins: bool = False
    skip_invalid: bool = False


@dataclass(slots=True)
class ReadFile:
    """A file whose rows are read.

    `good` has valid rows with asset, observed_at, values and line; `begin` and `tick` if needed. `read`, `empty`
    and `rejected` count rows, `rejections` describe the first rejected rows. `style` is the style of its times, `same`
    the value of each column that must name one asset, `buckets` the starts of a page's buckets.
    """

    table: SourceTable
    mapping: ColumnMapping
    request: HistoryRequest
    at: datetime
    times: TimeRules
    values: ValueRules
    good: list[pl.DataFrame] = field(default_factory=list)
    read: int = 0
    empty: int = 0
    rejected: int = 0
    rejections: list[str] = field(default_factory=list)
    style: TimeStyle | None = None
    same: dict[str, str] = field(default_factory=dict)
    buckets: set[int] = field(default_factory=set)


def open_file(path: Path, request: HistoryRequest, at: datetime) -> ReadFile:
    """A file with its column mapping; `at` is the present instant. UserError if its columns are invalid."""
    table = open_table(path, request.separator)
    mapping = map_columns(table, request.history, request.choice, percent=request.percent)
    if mapping.time in table.rounded:
        raise table.refused(None, mapping.time, None, "has 32-bit floats, in which times are rounded; write integers")
    if mapping.own:
        return ReadFile(table, mapping, request, at, TimeRules(), ValueRules())
    values = rules_of(request.history, comma=request.comma, percent=request.percent)
    return ReadFile(table, mapping, request, at, request.times, values)


def read_rows(file: ReadFile, rows: pl.DataFrame, names: AssetNames) -> None:
    """Add the valid rows of a batch to the file. UserError for the first invalid row, unless they may be skipped."""
    mapping, request = file.mapping, file.request
    if mapping.history is not None:
        rows = rows.filter(pl.col(mapping.history) == request.history.name)
    _require_one_asset(file, rows)
    if mapping.wide:
        rows = rows.unpivot(mapping.wide, index=["line", mapping.time], variable_name=_WIDE, value_name=WIDE_VALUE)
    parsed = parse_times(rows[mapping.time], file.times).with_columns(
        rows["line"],
        _asset_ids(file, rows, names).alias("asset"),
        *(parse_values(rows[column], file.values).alias(name) for name, column in mapping.values.items()),
    )
    if mapping.page:
        file.buckets.update(parsed["second"].drop_nulls())
    if file.style is None and parsed["style"].count():
        file.style = TimeStyle(parsed["style"].drop_nulls()[0])
    holds = pl.all_horizontal(check for check, _, _ in _checks(file))
    is_good = parsed.select(holds.fill_null(value=False)).to_series()
    file.read += rows.height
    if not is_good.all():
        _reject(file, rows.filter(~is_good), parsed.filter(~is_good), names)
        parsed = parsed.filter(is_good)
    others = ["begin"] if request.stamps.stamp or mapping.page or request.choice.candles else []
    others += ["tick"] if (parsed["tick"] != 0).any() else []
    seconds = [pl.col(name).cast(pl.UInt32) for name in others]
    file.good.append(
        parsed.select("asset", *seconds, pl.col("second").cast(pl.UInt32).alias("observed_at"), *mapping.values, "line")
    )


def _asset_ids(file: ReadFile, rows: pl.DataFrame, names: AssetNames) -> pl.Series | pl.Expr:
    """The asset id of each row; null for an unknown name. UserError if the name for all rows is unknown."""
    mapping = file.mapping
    column = _WIDE if mapping.wide else mapping.asset
    if column is None:
        asset_id, fault = (TOTAL, "") if mapping.named is None else names.named(mapping.named)
        if fault:
            raise file.table.refused(None, None, mapping.named, fault)
        return pl.lit(asset_id).cast(_ASSET)
    keys = [column, mapping.symbol] if mapping.symbol else [column]
    distinct = rows.select(pl.col(keys).fill_null("")).unique(subset=[column], maintain_order=True)
    ids = [
        TOTAL if mapping.own and not name.strip() else names.named(name, *symbol).asset_id
        for name, *symbol in distinct.iter_rows()
    ]
    return rows[column].fill_null("").replace_strict(distinct[column], pl.Series(ids, dtype=_ASSET))


def _checks(file: ReadFile) -> list[tuple[pl.Expr, str, str]]:
    """What holds for a valid row, the column that it is about, and the fault of other rows; it is empty for assets. The
    first fault of a row is reported."""
    mapping, history, values = file.mapping, file.request.history, file.mapping.values
    style_fault = f"is not a {file.style} as in earlier rows; use one style for all times"
    value_faults = value_fault(history, file.values)
    candle_fault = "is not between low and high; check which column is which"
    bounded = [name for name in ("open", "value") if "open" in values]
    return [
        (pl.col("second").is_not_null(), mapping.time, time_fault(file.times)),
        (pl.col("second") >= 0, mapping.time, "is before 1970"),
        (pl.col("second") <= last_second(file.at), mapping.time, future_fault(file.times, file.style, file.at)),
        (pl.col("style") == str(file.style), mapping.time, style_fault),
        (pl.col("asset").is_not_null(), _WIDE if mapping.wide else mapping.asset or "", ""),
        *((valid_values(history, file.values, name), column, value_faults) for name, column in values.items()),
        *((pl.col(name).is_between("low", "high"), values[name], candle_fault) for name in bounded),
    ]


def _reject(file: ReadFile, rows: pl.DataFrame, parsed: pl.DataFrame, names: AssetNames) -> None:
    """Count empty and invalid rows. UserError for the first invalid row, unless they may be skipped."""
    mapping = file.mapping
    is_empty = pl.all_horizontal(map(is_missing, mapping.values.values())) & parsed["second"].is_not_null()
    if mapping.count is not None:
        is_empty |= pl.col(mapping.count) == "0"
    empty = rows.select(is_empty).to_series()
    file.empty += int(empty.sum())
    file.rejected += rows.height - int(empty.sum())
    bad = rows.with_row_index("number").filter(~empty).sort("line", maintain_order=True)
    for row in bad.head(SHOWN - len(file.rejections)).iter_rows(named=True):
        values = parsed[row["number"]]
        column, fault = next(
            (column, fault) for check, column, fault in _checks(file) if not values.select(check).item()
        )
        advice = fault or names.named(row[column] or "").fault
        title = row[_WIDE] if mapping.wide and column != mapping.time else column
        refusal = file.table.refused(row["line"], title, row[column], advice)
        if not file.request.skip_invalid:
            raise refusal
        file.rejections.append(str(refusal))


def _require_one_asset(file: ReadFile, rows: pl.DataFrame) -> None:
    """UserError if a column says that prices are not in USD, or that rows for one asset are of several."""
    for column in file.mapping.quotes:
        foreign = rows.filter(~pl.col(column).str.strip_chars().str.to_lowercase().is_in(["", *DOLLARS]))
        if foreign.height:
            raise file.table.refused(foreign["line"][0], column, foreign[column][0], "is not USD; convert the values")
    for column in file.mapping.same:
        texts = rows.select("line", column).drop_nulls()
        first = file.same.setdefault(column, texts[column][0]) if texts.height else ""
        others = texts.filter(pl.col(column) != first)
        if others.height:
            advice = f"differs from the asset {first[:40]!r} of earlier rows; add --asset-column {column}"
            raise file.table.refused(others["line"][0], column, others[column][0], advice)
