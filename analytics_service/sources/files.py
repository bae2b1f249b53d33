"""Judges the rows of price and rate files: which asset, which second, which numbers, or why not."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import polars as pl

from analytics_service.errors import ImportRefused
from analytics_service.market.assets import Asset
from analytics_service.market.values import DECIMALS
from analytics_service.sources.tables import Form, Key, Table

TimeUnit = Literal["s", "ms"]
# Unix seconds reach this in the year 5138; as milliseconds it is March 1973.
_MILLISECONDS_FROM = 10**11
# An observation cannot come from the future; a day allows for clocks and zones that are off.
_AHEAD = 86_400
_LAST_SECOND = 2**32 - 1
_VALUE = pl.Decimal(38, DECIMALS)
_FLAG = {"true": True, "false": False}
_UNKNOWN = dict.fromkeys(Key, "neither in the assets file nor registered") | {
    Key.ADDRESS: "no row gives it a symbol and a number of decimals"
}


@dataclass(frozen=True, slots=True)
class Names:
    """What a row may call an asset, and the ids that can come out of it. Addresses are in lower case."""

    ids: dict[Key, dict[str, str]]
    ambiguous: frozenset[str]
    dtype: pl.Enum

    @classmethod
    def of(cls, listed: Iterable[Asset], registered: Iterable[Asset]) -> "Names":
        """Names of the assets in the assets file and in the store. A symbol in the file means the file's asset."""
        listed, registered = list(listed), list(registered)
        symbols: dict[str, str] = {}
        ambiguous: set[str] = set()
        for asset in registered:
            if symbols.setdefault(asset.symbol, asset.id) != asset.id:
                ambiguous.add(asset.symbol)
        for asset in listed:
            symbols[asset.symbol] = asset.id
        ambiguous -= {asset.symbol for asset in listed}
        ids = sorted({asset.id for asset in [*listed, *registered]})
        addresses = {asset.group_key.lower(): asset.id for asset in [*registered, *listed]}
        resolved = {symbol: id_ for symbol, id_ in symbols.items() if symbol not in ambiguous}
        return cls(
            {Key.SYMBOL: resolved, Key.ID: dict(zip(ids, ids, strict=True)), Key.ADDRESS: addresses},
            frozenset(ambiguous),
            pl.Enum(ids),
        )


@dataclass(slots=True)
class Judged:
    """The outcome of a file. Good rows: asset (Enum of ids), observed_at (UInt32 seconds), values; in file order."""

    good: list[pl.DataFrame]
    read: int = 0
    rejected: int = 0


def judge_table(
    table: Table,
    names: Names,
    unit: TimeUnit,
    at: datetime,
    reject: Callable[[pl.DataFrame], None],
    advance: Callable[[int], None],
) -> Judged:
    """Judge all rows of a file. `reject` gets bad rows (line, the file's fields, reason) as they are met, in order.

    ImportRefused when the file's times are in the other unit, or when it turns out to be unreadable.
    """
    form = table.form
    nothing = {"asset": names.dtype, "observed_at": pl.UInt32(), **dict.fromkeys(form.values, _VALUE)}
    judged, scale = Judged([pl.DataFrame(schema=nothing)]), _Scale(table, unit)
    latest = min(int(at.timestamp()) + _AHEAD, _LAST_SECOND)
    for block, size in table.blocks():
        rows = _parsed(block, names, form)
        scale.add(rows["time_number"])
        rows = rows.with_columns(observed_at=pl.col("time_number") // (1000 if unit == "ms" else 1))
        usable = rows.select(_is_good(form, latest)).to_series()
        good = rows if usable.all() else rows.filter(usable)
        judged.good.append(good.select("asset", pl.col("observed_at").cast(pl.UInt32), *_values(form)))
        judged.read += rows.height
        if good.height < rows.height:
            judged.rejected += rows.height - good.height
            reject(_explained(rows.filter(~usable), names, table, latest))
        advance(size)
    scale.check()
    return judged


def _parsed(block: pl.DataFrame, names: Names, form: Form) -> pl.DataFrame:
    ids = names.ids[form.key]
    key = _text("key").str.to_lowercase() if form.key is Key.ADDRESS else _text("key")
    asset = key.replace_strict(
        pl.Series(list(ids), dtype=pl.String),
        pl.Series(list(ids.values()), dtype=names.dtype),
        default=None,
        return_dtype=names.dtype,
    )
    return block.with_columns(
        asset=asset,
        # Spreadsheets and data frames write whole numbers as 1609459200.0.
        time_number=_text("time").str.strip_suffix(".0").cast(pl.Int64, strict=False),
        **{_number(field): _text(field).cast(_VALUE, strict=False) for field in form.values},
    )


def _text(field: str) -> pl.Expr:
    return pl.col(field).str.strip_chars()


def _number(field: str) -> str:
    return f"{field}_number"


def _flag(field: str) -> pl.Expr:
    """True or False in any case, as a Boolean; null for anything else."""
    return _text(field).str.to_lowercase().replace_strict(_FLAG, default=None, return_dtype=pl.Boolean)


def _values(form: Form) -> list[pl.Expr]:
    """The numbers of good rows. What cannot be borrowed, and is not, has no borrow rate."""
    values = {field: pl.col(_number(field)) for field in form.values}
    if "enabled" in form.columns:
        values["borrow"] = pl.when(_flag("enabled") | (values["borrow"] > 0)).then(values["borrow"])
    return [value.alias(field) for field, value in values.items()]


def _is_good(form: Form, latest: int) -> pl.Expr:
    good = (
        (pl.col("extra") == "")
        & pl.col("asset").is_not_null()
        & pl.col("observed_at").is_between(0, latest).fill_null(False)
    )
    for field, most in form.values.items():
        good &= pl.col(_number(field)).is_not_null() & ~_is_negative(field)
        if most is not None:
            good &= (pl.col(_number(field)) <= most).fill_null(False)
    return good & _flag("enabled").is_not_null() if "enabled" in form.columns else good


def _is_negative(field: str) -> pl.Expr:
    # By text: what rounds to zero may be negative, and -0 is not.
    return _text(field).str.contains(r"^-[0.]*[1-9]")


def _explained(bad: pl.DataFrame, names: Names, table: Table, latest: int) -> pl.DataFrame:
    """Bad rows as they stand in the file, with the first reason that applies."""
    form = table.form
    key, time = _text("key"), _text("time")
    column, time_column = form.columns["key"], form.columns["time"]
    reasons = {
        f"the row has more than {len(table.fields)} fields": pl.col("extra") != "",
        "the row is empty": pl.concat_str(*map(_text, table.fields)) == "",
        f"{column} is empty": key == "",
        "several assets have this symbol; say which in the assets file": key.is_in(list(names.ambiguous))
        & pl.col("asset").is_null(),
        f"unknown {column}: {_UNKNOWN[form.key]}": pl.col("asset").is_null(),
        f"{time_column} is empty": time == "",
        f"{time_column} is negative": _is_negative("time") & time.str.contains(r"^-[0-9]+(\.0)?$"),
        f"{time_column} is in the future": (pl.col("observed_at") > latest) | time.str.contains(r"^\+?[0-9]{19,}$"),
        f"{time_column} is not a whole number": pl.col("time_number").is_null(),
    }
    for field, most in form.values.items():
        reasons |= _value_reasons(field, form.columns[field], most)
    if "enabled" in form.columns:
        reasons[f"{form.columns['enabled']} is neither True nor False"] = _flag("enabled").is_null()
    reason = pl.coalesce(pl.when(applies).then(pl.lit(text)) for text, applies in reasons.items())
    last = table.fields[-1]
    whole = pl.when(pl.col("extra") == "").then(last).otherwise(pl.concat_str(last, pl.lit(","), "extra"))
    return bad.with_columns(whole.alias(last), reason.alias("reason")).select("line", *table.fields, "reason")


def _value_reasons(field: str, column: str, most: int | None) -> dict[str, pl.Expr]:
    text, value = _text(field), pl.col(_number(field))
    number = text.str.contains(r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$")
    limit = "is not below 10^20" if most is None else f"is above {most}"
    return {
        f"{column} is empty": text == "",
        f"{column} is infinite": text.str.contains(r"^(?i)[+-]?inf(inity)?$"),
        f"{column} is negative": _is_negative(field) & number,
        f"{column} {limit}": number & (value.is_null() if most is None else value.is_null() | (value > most)),
        f"{column} is not a number": value.is_null(),
    }


@dataclass(slots=True)
class _Scale:
    """Whether a file's times are in the unit that was named: half of them far off means they are not."""

    table: Table
    unit: TimeUnit
    whole: int = 0
    odd: int = 0
    first: int | None = None

    def add(self, times: pl.Series) -> None:
        odd = times >= _MILLISECONDS_FROM if self.unit == "s" else times < _MILLISECONDS_FROM
        self.whole += times.len() - times.null_count()
        count = int(odd.sum())
        if count and self.first is None:
            self.first = int(times.filter(odd)[0])
        self.odd += count

    def check(self) -> None:
        if self.first is None or self.odd * 2 < self.whole:
            return
        column, path = self.table.form.columns["time"], self.table.path
        if self.unit == "s":
            raise ImportRefused(
                f"The times of {path} look like milliseconds: the first {column} is {self.first}. Nothing was written. "
                "Import it with --time-unit ms."
            )
        raise ImportRefused(
            f"The times of {path} look like seconds: the first {column} is {self.first}. Nothing was written. "
            "Import it without --time-unit ms."
        )
