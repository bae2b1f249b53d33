"""The views that a source reads: columns and their defaults. `example source-views` prints and explains them."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from analytics_service.market.assets import Asset, AssetKind
from analytics_service.market.events import Event
from analytics_service.market.kinds import AssetId, ColumnType, Time, columns_of, row_of
from analytics_service.market.markets import NO_CONFIG, CollateralMarket, DebtMarket, GlobalConfig, LendMarket
from analytics_service.market.prices import Price
from analytics_service.market.ptoken import Arrangement, Ptoken, ScheduleKind, StakingPool
from analytics_service.store.datasets.markets import ROUTES
from analytics_service.store.datasets.positions import ITEM_COLUMNS

_ZERO, _ONE = Decimal(0), Decimal(1)
# Default of decimal places in texts; imports have the same.
_DISPLAYED = 6


@dataclass(frozen=True, slots=True)
class ColumnDefault:
    """The value of a column that a view lacks, or that is null, or empty where empty text is no value.

    `of` computes it from the values of the row; its ValueError says why a value is required. `words` are for people.
    """

    words: str
    of: Callable[[Mapping[str, Any]], Any]


@dataclass(frozen=True, slots=True)
class SourceView:
    """A view of a source, with its column types. `query` selects the rows as of an instant; queries of newest rows take
    the newest row for each `key`. A view without a column `observed_at` has one set of rows for all instants, or if it
    `moves`, present rows only. `defaults` are by column; others default to null if they are nullable, else they are
    required."""

    name: str
    columns: Mapping[str, ColumnType]
    defaults: Mapping[str, ColumnDefault] = field(default_factory=dict)
    query: str = "read_source_snapshot"
    key: tuple[str, ...] = ()
    required: bool = False
    moves: bool = False

    def default(self, column: str) -> ColumnDefault:
        if column == "observed_at":
            return _NOW if self.moves else _AT
        return self.defaults.get(column, _NULL if self.columns[column].nullable else REQUIRED)

    def ddl(self) -> str:
        """The columns for CREATE TABLE. `observed_at` is not nullable, because tables are sorted by it."""
        return ",\n    ".join(
            f"{name} {kind.sql if self.default(name) in (REQUIRED, _AT, _NOW) else f'Nullable({kind.sql})'} "
            f"COMMENT '{kind.meaning}. {self.default(name).words}'"
            for name, kind in self.columns.items()
        )


def _missing(_: Mapping[str, Any]) -> None:
    raise ValueError("a value is required")


def _null(words: str) -> ColumnDefault:
    return ColumnDefault(words, lambda _: None)


REQUIRED = ColumnDefault("Required", _missing)
_NULL = _null("Default: null")
_AT = _null("Without it, all rows are valid at every instant")
_NOW = _null("Without it, all rows are present rows, and there is no past")


def _plain(value: Any) -> ColumnDefault:
    shown = str(value).lower() if isinstance(value, bool) else str(value)
    return ColumnDefault(f"Default: {shown or 'empty'}", lambda _: value)


def _same_as(name: str) -> ColumnDefault:
    return ColumnDefault(f"Default: {name}", lambda row: row.get(name))


def _needed(name: str, value: str | None = None) -> ColumnDefault:
    """The default of a column that is required if another column has a value, or a certain value."""

    def default(row: Mapping[str, Any]) -> None:
        if row.get(name) is not None and value in (None, row[name]):
            raise ValueError(f"a value is required, because {name} is {row[name]}")

    return ColumnDefault(f"Required where {name} is {value}" if value else f"Required with {name}", default)


_OBSERVED_AT = {"observed_at": Time("Instant from which the row is valid, until the next row")}
_SNAPSHOT = {"observed_at": Time("Instant of the snapshot; the newest snapshot counts, with all its rows")}

# The markets of an asset: the record of each, and the column that is null if there is no such market.
MARKETS = {
    "lend": (LendMarket, "lend_principal"),
    "collateral": (CollateralMarket, "collateral_balance"),
    "debt": (DebtMarket, "debt_balance"),
}
_FIELDS = Counter(name for record, _ in MARKETS.values() for name in columns_of(record))


def column_of(market: str, field: str) -> str:
    """The column of a market's field, with the market's name if other markets have the field, too."""
    return f"{market}_{field}" if market == "lend" or _FIELDS[field] > 1 else field


def _market_view() -> SourceView:
    columns: dict[str, ColumnType] = {"asset_id": AssetId("Asset id"), **_OBSERVED_AT}
    defaults: dict[str, ColumnDefault] = {}
    for market, (record, amount) in MARKETS.items():
        kinds = {column_of(market, name): kind for name, kind in columns_of(record).items()}
        columns |= kinds
        defaults |= {name: _needed(amount) for name, kind in kinds.items() if not kind.nullable}
        defaults[amount] = _null(f"Null: no {market} market")
    zero = ("min_discount", "max_discount", "interest_fee", "utilization_accumulator")
    defaults |= {
        **dict.fromkeys(("collateral_enabled", "debt_enabled"), _plain(True)),
        **dict.fromkeys(zero, _plain(_ZERO)),
        "borrow_halt_utilization": _plain(_ONE),
        "lend_receipt_supply": _same_as("lend_principal"),
        "collateral_shares": _same_as("collateral_balance"),
        "debt_shares": _same_as("debt_balance"),
        "time_last_distributed_interest": _same_as("observed_at"),
    }
    return SourceView("source_market", columns, defaults, query="read_source_newest", key=("asset_id",), moves=True)


ASSET = SourceView(
    "source_asset",
    {
        "asset_id": AssetId("Asset id"),
        **{"decimals" if name == "decimals_denom" else name: kind for name, kind in columns_of(Asset).items()},
    },
    {
        "name": _same_as("symbol"),
        "symbol_denom": ColumnDefault(
            "Default: the id after the semicolon", lambda row: row["asset_id"].partition(";")[2]
        ),
        "decimals_display": ColumnDefault(
            f"Default: decimals, but at most {_DISPLAYED}", lambda row: min(row["decimals"], _DISPLAYED)
        ),
        "kind": _plain(AssetKind.REGULAR),
    },
    required=True,
)
PRICE = SourceView(
    "source_price", columns_of(Price), query="read_source_newest", key=("asset_id",), required=True, moves=True
)
MARKET = _market_view()
CONFIG = SourceView(
    "source_config",
    {**_OBSERVED_AT, **columns_of(GlobalConfig)},
    {name: _plain(value) for name, value in row_of(NO_CONFIG).items()},
)
EVENT = SourceView(
    "source_event", columns_of(Event), {"contract": _plain(""), "tx_hash": _plain("")}, query="read_source_events"
)
COMPLETE = SourceView(
    "source_complete",
    {"complete_until": Time("Instant up to which source_event has all events")},
    query="read_source_rows",
)
POSITION = SourceView(
    "source_position",
    {**_SNAPSHOT, **{name: kind for name, kind in ITEM_COLUMNS.items() if name != "item"}},
    {
        **dict.fromkeys(("account_index", "pool", "amount"), _plain(0)),
        "last_stake_acc": _plain(_ZERO),
        "asset_id": _plain(""),
        "cascade": _plain(False),
        "until": _needed("kind", "unbonding"),
    },
    moves=True,
)
_UNSTATED = ("emission_rate", "tokens_per_weight", "total_issued", "total_claimed", "total_locked")
PTOKEN = SourceView(
    "source_ptoken",
    {**_OBSERVED_AT, **columns_of(Ptoken)},
    {
        **dict.fromkeys(_UNSTATED, _plain(0)),
        "rewards_last_distributed": _same_as("observed_at"),
        "stake_acc": _plain(_ZERO),
    },
)
POOL = SourceView(
    "source_pool",
    {**_SNAPSHOT, **columns_of(StakingPool)},
    {
        **dict.fromkeys(("reward_weight", "gov_weight", "health_weight", "flash_loan_weight"), _plain(_ONE)),
        "total_bonded": _plain(0),
    },
)
ARRANGEMENT = SourceView(
    "source_arrangement",
    {**_SNAPSHOT, **columns_of(Arrangement)},
    {
        **dict.fromkeys(("claimed", "staked", "held"), _plain(0)),
        "member_class": REQUIRED,
        "ends_at": _needed("kind", ScheduleKind.LINEAR),
        "admin": _plain(""),
    },
)
ROUTE = SourceView("source_route", {**_SNAPSHOT, **ROUTES.columns})

VIEWS = {
    view.name: view
    for view in (ASSET, PRICE, MARKET, CONFIG, EVENT, COMPLETE, POSITION, PTOKEN, POOL, ARRANGEMENT, ROUTE)
}
