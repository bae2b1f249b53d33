"""The accepted layouts of files of history."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum


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
