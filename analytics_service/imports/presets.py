"""What imports of histories fill, and which columns their files have if not those with usual names."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import polars as pl

from analytics_service.store.datasets.histories import BORROW_RATES, HISTORIES, LEND_RATES, History


@dataclass(frozen=True, slots=True)
class Preset:
    """An import, by the name of its command: a family of the ledger, and the histories that its values fill, by name.
    Every row has the first value.

    `columns` are those of its files by role: time, asset, the names of values, and `symbol` and `decimals` if rows
    describe their assets. `switches` are columns by value: where they say False, 0 is no value. It counts as 0 after
    all if another row of the same asset has a value, in the import or in the store.
    """

    name: str
    family: str
    histories: Mapping[str, History]
    meaning: str
    columns: Mapping[str, str] = field(default_factory=dict)
    switches: Mapping[str, str] = field(default_factory=dict)

    @property
    def history(self) -> History:
        """The history of the first value."""
        return next(iter(self.histories.values()))

    def observations(self, rows: pl.DataFrame) -> dict[str, int]:
        """The number of observations in merged rows for each history, by name."""
        return {history.name: rows[name].count() for name, history in self.histories.items()}


def preset_of(history: History) -> Preset:
    """The import of one history."""
    return Preset(history.slug, history.family, {"value": history}, history.meaning)


PRICES = replace(preset_of(HISTORIES[0]), name="prices")
RATES = Preset(
    "rates",
    "rates",
    {"lend": LEND_RATES, "borrow": BORROW_RATES},
    "lend and borrow rates from states of reserves, as fractions",
    columns={
        "time": "timestamp",
        "asset": "asset_address",
        "symbol": "symbol",
        "decimals": "decimals",
        "lend": "current_liquidity_rate",
        "borrow": "current_variable_borrow_rate",
    },
    # An asset that could ever be borrowed has a borrow rate at all times.
    switches={"borrow": "borrowing_enabled"},
)
PRESETS: Sequence[Preset] = (*map(preset_of, HISTORIES), PRICES, RATES)
