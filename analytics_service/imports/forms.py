"""The accepted layouts of files of history."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import Enum

import polars as pl

from analytics_service.errors import ImportRefused
from analytics_service.imports.columnar import is_readable
from analytics_service.imports.tables import Table


class Key(Enum):
    """The kind of name that identifies the asset of a row. Addresses `0x...` may be in any case (rule 3.4)."""

    SYMBOL = "symbol"
    ID = "asset id"
    ADDRESS = "address"


@dataclass(frozen=True, slots=True)
class Form:
    """The columns of a file by field, among them `key` and `time`.

    `values` are the fields with numbers, which must not be negative, each with its greatest value; None means below
    10^20. `flags` maps some of these fields to a field of True or False: if that is False and the number is 0, the row
    has no value. With `extra_columns`, a file may have further columns, which are ignored.
    """

    key: Key
    columns: Mapping[str, str]
    values: Mapping[str, int | None]
    flags: Mapping[str, str] = field(default_factory=dict)
    extra_columns: bool = False

    def __str__(self) -> str:
        return ",".join(self.columns.values())

    @property
    def describes_assets(self) -> bool:
        """Whether each row has the symbol, address and decimals of its asset."""
        return self.key is Key.ADDRESS


@dataclass(frozen=True, slots=True, kw_only=True)
class FormTable(Table):
    """A table whose fields are those of a form; further columns have other names."""

    form: Form


def recognized(table: Table, forms: Sequence[Form]) -> FormTable:
    """The table with the fields of the form that its columns fit. ImportRefused if they fit none, or if a column that
    is used has a type that cannot be read."""
    names = [name.strip('"').lower() for name in table.columns]
    for form in forms:
        used = {name.lower(): field for field, name in form.columns.items()}
        has_all = all(names.count(name) == 1 for name in used)
        if has_all and (form.extra_columns or len(names) == len(used)):
            renamed = table.renamed([used.get(name, f"column {index}") for index, name in enumerate(names)])
            _require_types(renamed, form)
            return FormTable(**{f.name: getattr(renamed, f.name) for f in fields(Table)}, form=form)
    shown = ", ".join(table.columns)[:200]
    raise ImportRefused(f"{table.path} has the columns {shown!r}. It needs {' or '.join(map(str, forms))}.")


def _require_types(table: Table, form: Form) -> None:
    for name, field_name in zip(table.columns, table.fields, strict=True):
        dtype = table.types.get(name)
        if dtype is None or field_name not in form.columns:
            continue
        if not is_readable(dtype) or dtype.is_temporal():
            raise ImportRefused(
                f"Column {name} of {table.path} is of type {dtype}. Write prices, rates and unix times as numbers or "
                "text."
            )
        if field_name == "time" and dtype == pl.Float32:
            raise ImportRefused(
                f"Column {name} of {table.path} is of type Float32, in which unix times are rounded to minutes. Write "
                "whole numbers."
            )
