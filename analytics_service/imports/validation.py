"""Validates the rows of a file: reads each row's asset, second and numbers, or gives the reason for its rejection."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import polars as pl

from analytics_service.errors import ImportRefused
from analytics_service.imports.assets_file import RUNS, stripped
from analytics_service.imports.forms import Form, FormTable, Key
from analytics_service.imports.tables import FAULTS
from analytics_service.imports.times import last_second
from analytics_service.market.assets import Asset, AssetGroup, id_key
from analytics_service.market.instants import MILLISECONDS
from analytics_service.market.kinds import DECIMAL
from analytics_service.market.spreadsheets import FORMULA

TimeUnit = Literal["s", "ms"]
# As unix seconds this is the year 5138; as milliseconds it is March 1973.
_MILLISECONDS_FROM = 10**11
_FLAG = {"true": True, "false": False}
_UNKNOWN = dict.fromkeys(Key, "neither in the assets file (--assets) nor in the store") | {
    Key.ADDRESS: "no row gives it a symbol and a number of decimals"
}


@dataclass(frozen=True, slots=True)
class Names:
    """Asset ids by the names that rows may use, for each kind of name; addresses are `id_key`s. `dtype` has all ids.

    `keys` maps `id_key`s to ids, for ids in another case (rule 3.4), unless several ids differ only in case.
    """

    ids: dict[Key, dict[str, str]]
    keys: dict[str, str]
    ambiguous: frozenset[str]
    dtype: pl.Enum

    @classmethod
    def of(cls, listed: Iterable[Asset], registered: Iterable[Asset]) -> "Names":
        """Names of the assets that the import's files list, and of those in the store.

        A symbol or address of a listed asset means that asset.
        """
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
        addresses = {id_key(asset.id): asset.id for asset in [*registered, *listed]}
        resolved = {symbol: id_ for symbol, id_ in symbols.items() if symbol not in ambiguous}
        return cls(
            {Key.SYMBOL: resolved, Key.ID: dict(zip(ids, ids, strict=True)), Key.ADDRESS: addresses},
            _by_key(ids),
            frozenset(ambiguous),
            pl.Enum(ids),
        )


def _by_key(ids: Sequence[str]) -> dict[str, str]:
    counts = Counter(map(id_key, ids))
    return {id_key(asset_id): asset_id for asset_id in ids if counts[id_key(asset_id)] == 1}


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules for validation: names of assets, the unit of times, and the present instant.

    Observations more than a day after the present instant are refused.
    """

    names: Names
    unit: TimeUnit
    at: datetime


@dataclass(slots=True)
class ValidatedFile:
    """The good rows of a file in its order, and the counts of all rows and of rejected rows.

    Columns: asset (Enum of ids), observed_at (UInt32, unix seconds), and the values of the form.
    """

    good: list[pl.DataFrame]
    read: int = 0
    rejected: int = 0


def validate_file(
    table: FormTable, rules: Rules, reject: Callable[[pl.DataFrame], None], advance: Callable[[int], None]
) -> ValidatedFile:
    """Validate all rows of a file. `reject` is called with blocks of bad rows (line, the file's fields, reason) in
    order.

    ImportRefused when the file's times are in the other unit, or when the file is unreadable.
    """
    form, names, unit = table.form, rules.names, rules.unit
    nothing = {"asset": names.dtype, "observed_at": pl.UInt32(), **dict.fromkeys(form.values, DECIMAL)}
    validated, scale = ValidatedFile([pl.DataFrame(schema=nothing)]), _Scale(table, unit)
    latest = last_second(rules.at)
    for block, size in table.blocks():
        rows = _parsed(block, names, form)
        scale.add(rows["time_number"])
        rows = rows.with_columns(observed_at=pl.col("time_number") // (MILLISECONDS if unit == "ms" else 1))
        usable = rows.select(_is_good(form, latest)).to_series()
        good = rows if usable.all() else rows.filter(usable)
        validated.good.append(good.select("asset", pl.col("observed_at").cast(pl.UInt32), *_values(form)))
        validated.read += rows.height
        if good.height < rows.height:
            validated.rejected += rows.height - good.height
            reject(_explained(rows.filter(~usable), names, table, latest))
        advance(size)
    scale.check()
    return validated


def _parsed(block: pl.DataFrame, names: Names, form: Form) -> pl.DataFrame:
    return block.with_columns(
        asset=_asset(names, form.key),
        # Spreadsheets and data frames write whole numbers as 1609459200.0.
        time_number=_stripped("time").str.strip_suffix(".0").cast(pl.Int64, strict=False),
        **{_number(field): _stripped(field).cast(DECIMAL, strict=False) for field in form.values},
    )


def _asset(names: Names, kind: Key) -> pl.Expr:
    key = _stripped("key")
    if kind is Key.ADDRESS:
        return _asset_id(_id_key(pl.format(f"{AssetGroup.TOKEN};{{}}", key)), names.ids[kind], names.dtype)
    asset_id = _asset_id(key, names.ids[kind], names.dtype)
    if kind is Key.SYMBOL:
        return asset_id
    return pl.coalesce(asset_id, _asset_id(_id_key(key), names.keys, names.dtype))


def _id_key(asset_id: pl.Expr) -> pl.Expr:
    """Like `assets.id_key`, as an expression."""
    return pl.when(asset_id.str.contains("^token;0[xX]")).then(asset_id.str.to_lowercase()).otherwise(asset_id)


def _asset_id(name: pl.Expr, ids: Mapping[str, str], dtype: pl.Enum) -> pl.Expr:
    old, new = pl.Series(list(ids), dtype=pl.String), pl.Series(list(ids.values()), dtype=dtype)
    return name.replace_strict(old, new, default=None, return_dtype=dtype)


def _stripped(field: str) -> pl.Expr:
    return pl.col(field).str.strip_chars()


def _number(field: str) -> str:
    return f"{field}_number"


def _flag(field: str) -> pl.Expr:
    """True or False, written in any case, as a Boolean; null for anything else."""
    return _stripped(field).str.to_lowercase().replace_strict(_FLAG, default=None, return_dtype=pl.Boolean)


def _values(form: Form) -> list[pl.Expr]:
    """The numbers of good rows; null if a flag says that there is no value."""
    values = {field: pl.col(_number(field)) for field in form.values}
    for field, flag in form.flags.items():
        values[field] = pl.when(_flag(flag) | (values[field] > 0)).then(values[field])
    return [value.alias(field) for field, value in values.items()]


def _is_good(form: Form, latest: int) -> pl.Expr:
    good = (
        (pl.col("extra") == "")
        & pl.col("asset").is_not_null()
        & pl.col("observed_at").is_between(0, latest).fill_null(False)
    )
    for field, maximum in form.values.items():
        good &= pl.col(_number(field)).is_not_null() & ~_is_negative(field)
        if maximum is not None:
            good &= (pl.col(_number(field)) <= maximum).fill_null(False)
    for flag in form.flags.values():
        good &= _flag(flag).is_not_null()
    return good


def _is_negative(field: str) -> pl.Expr:
    # Compared as a string: a number that rounds to zero may be negative, and -0 is not.
    return _stripped(field).str.contains(r"^-[0.]*[1-9]")


def _explained(bad: pl.DataFrame, names: Names, table: FormTable, latest: int) -> pl.DataFrame:
    """Bad rows with their original fields, and the first reason that applies."""
    form = table.form
    key, time = _stripped("key"), _stripped("time")
    column, time_column = form.columns["key"], form.columns["time"]
    reasons = {
        **{fault: pl.col("extra") == fault for fault in FAULTS},
        f"the row has more than {len(table.fields)} fields": pl.col("extra") != "",
        "the row is empty": pl.concat_str(*map(_stripped, table.fields)) == "",
        f"{column} is empty": key == "",
        "several assets have this symbol; say which in the assets file": key.is_in(list(names.ambiguous))
        & pl.col("asset").is_null(),
        **_formula_reason(form),
        f"unknown {column}: {_UNKNOWN[form.key]}": pl.col("asset").is_null(),
        f"{time_column} is empty": time == "",
        f"{time_column} is negative": _is_negative("time") & time.str.contains(r"^-[0-9]+(\.0)?$"),
        f"{time_column} is in the future": (pl.col("observed_at") > latest) | time.str.contains(r"^\+?[0-9]{19,}$"),
        f"{time_column} is not a whole number": pl.col("time_number").is_null(),
    }
    for field, maximum in form.values.items():
        reasons |= _value_reasons(field, form.columns[field], maximum)
    for flag in form.flags.values():
        reasons[f"{form.columns[flag]} is neither True nor False"] = _flag(flag).is_null()
    reason = pl.coalesce(pl.when(applies).then(pl.lit(message)) for message, applies in reasons.items())
    last = table.fields[-1]
    last_field = (
        pl.when(pl.col("extra").is_in(["", *FAULTS])).then(last).otherwise(pl.concat_str(last, pl.lit(","), "extra"))
    )
    return bad.with_columns(last_field.alias(last), reason.alias("reason")).select("line", *table.fields, "reason")


def _formula_reason(form: Form) -> dict[str, pl.Expr]:
    """The reason for rejecting rows whose asset is unknown only because its symbol is refused."""
    if not form.describes_assets:
        return {}
    is_formula = stripped(pl.col("symbol"), "symbol").str.contains(FORMULA)
    return {f"{form.columns['symbol']} {RUNS}": pl.col("asset").is_null() & is_formula}


def _value_reasons(field: str, column: str, maximum: int | None) -> dict[str, pl.Expr]:
    written, value = _stripped(field), pl.col(_number(field))
    number = written.str.contains(r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$")
    limit = "is not below 10^20" if maximum is None else f"is above {maximum}"
    return {
        f"{column} is empty": written == "",
        f"{column} is infinite": written.str.contains(r"^(?i)[+-]?inf(inity)?$"),
        f"{column} is negative": _is_negative(field) & number,
        f"{column} {limit}": number & (value.is_null() if maximum is None else value.is_null() | (value > maximum)),
        f"{column} is not a number": value.is_null(),
    }


@dataclass(slots=True)
class _Scale:
    """Checks that a file's times are in the configured unit. They are not if at least half of them are far off."""

    table: FormTable
    unit: TimeUnit
    count: int = 0
    odd: int = 0
    first: int | None = None

    def add(self, times: pl.Series) -> None:
        odd = times >= _MILLISECONDS_FROM if self.unit == "s" else times < _MILLISECONDS_FROM
        self.count += times.len() - times.null_count()
        odd_count = int(odd.sum())
        if odd_count and self.first is None:
            self.first = int(times.filter(odd)[0])
        self.odd += odd_count

    def check(self) -> None:
        if self.first is None or self.odd * 2 < self.count:
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
