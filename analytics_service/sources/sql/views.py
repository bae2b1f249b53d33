"""The views that a source reads, with their columns. `example source-views` shows and explains each of them."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from analytics_service.market.assets import AssetKind
from analytics_service.market.events import Action, Leg
from analytics_service.market.fields import row_of
from analytics_service.market.markets import NO_CONFIG
from analytics_service.market.ptoken import MemberClass, ScheduleKind
from analytics_service.sources.sql.kinds import (
    ASSET_ID,
    DECIMAL,
    FLAG,
    TEXT,
    TEXT_OR_NONE,
    TEXTS,
    TIME,
    WHOLE,
    Kind,
    word,
)

_ZERO, _ONE = Decimal(0), Decimal(1)
# Decimal places that texts show, unless a view says otherwise; imports have the same.
_DISPLAYED = 6

# The default of a column for a row, from the values of the columns before it.
Default = Callable[[Mapping[str, Any]], Any]


class _Required:
    """The default of a column that must be there, with a value in each row."""


REQUIRED = _Required()


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a view. Its default counts where the view lacks the column, and in rows where it is null, or empty
    although the text is not free."""

    kind: Kind
    default: Any = REQUIRED

    def value(self, stored: Any, row: Mapping[str, Any]) -> Any:
        """The value in a row, from what is stored and the values of the columns before. ValueError says what is
        wrong."""
        value = None if stored is None else self.kind.decode(stored)
        if value is not None:
            return value
        if self.default is REQUIRED:
            raise ValueError("there must be a value")
        return self.default(row) if callable(self.default) else self.default


@dataclass(frozen=True, slots=True)
class View:
    """A view of a source. `query` selects its rows as of an instant; `key` are the columns of which it takes the newest
    row each. A view without a column `observed_at` has the same rows at every instant."""

    name: str
    columns: Mapping[str, Column]
    query: str = "source_snapshot"
    key: tuple[str, ...] = ()
    required: bool = False

    def untimed(self, present: Collection[str]) -> bool:
        """Whether a view with these columns has the same rows at every instant."""
        return self.query != "source_events" and "observed_at" not in present


def _same_as(name: str) -> Default:
    return lambda row: row[name]


def _needed_with(name: str) -> Default:
    """The default of a column that needs a value where another column has one."""

    def default(row: Mapping[str, Any]) -> None:
        if row[name] is not None:
            raise ValueError(f"there must be a value, because there is one of {name}")

    return default


def _needed_for(name: str, value: str) -> Default:
    """The default of a column that needs a value where another column has a certain one."""

    def default(row: Mapping[str, Any]) -> None:
        if row[name] == value:
            raise ValueError(f"there must be a value where {name} is {value}")

    return default


_OBSERVED_AT = {"observed_at": Column(TIME, None)}
_CONFIG_KINDS = {int: WHOLE, Decimal: DECIMAL, bool: FLAG, str: ASSET_ID}

ASSET = View(
    "source_asset",
    {
        "asset_id": Column(ASSET_ID),
        "symbol": Column(TEXT),
        "decimals": Column(WHOLE),
        "name": Column(TEXT, _same_as("symbol")),
        "symbol_denom": Column(TEXT, lambda row: row["asset_id"].partition(";")[2]),
        "decimals_display": Column(WHOLE, lambda row: min(row["decimals"], _DISPLAYED)),
        "kind": Column(word(AssetKind), AssetKind.REGULAR),
        "origin_asset": Column(TEXT_OR_NONE, None),
        "receipt_asset": Column(TEXT_OR_NONE, None),
    },
    required=True,
)
PRICE = View(
    "source_price",
    {"asset_id": Column(ASSET_ID), "observed_at": Column(TIME), "usd": Column(DECIMAL)},
    query="source_newest",
    key=("asset_id",),
    required=True,
)
MARKET = View(
    "source_market",
    {
        "asset_id": Column(ASSET_ID),
        **_OBSERVED_AT,
        "lend_principal": Column(WHOLE, None),
        "lend_receipt_supply": Column(WHOLE, _same_as("lend_principal")),
        "lend_apr": Column(DECIMAL, _needed_with("lend_principal")),
        "collateral_balance": Column(WHOLE, None),
        "collateral_shares": Column(WHOLE, _same_as("collateral_balance")),
        "collateral_enabled": Column(FLAG, True),
        "collateral_cap": Column(WHOLE, None),
        "allowable_ltv": Column(DECIMAL, _needed_with("collateral_balance")),
        "liquidation_ltv": Column(DECIMAL, _needed_with("collateral_balance")),
        "min_discount": Column(DECIMAL, _ZERO),
        "max_discount": Column(DECIMAL, _ZERO),
        "debt_balance": Column(WHOLE, None),
        "debt_shares": Column(WHOLE, _same_as("debt_balance")),
        "debt_apr": Column(DECIMAL, _needed_with("debt_balance")),
        "debt_enabled": Column(FLAG, True),
        "borrow_cap": Column(WHOLE, None),
        "borrow_halt_utilization": Column(DECIMAL, _ONE),
        "interest_fee": Column(DECIMAL, _ZERO),
        "time_last_distributed_interest": Column(TIME, _same_as("observed_at")),
        "utilization_accumulator": Column(DECIMAL, _ZERO),
    },
    query="source_newest",
    key=("asset_id",),
)
CONFIG = View(
    "source_config",
    {
        **_OBSERVED_AT,
        **{name: Column(_CONFIG_KINDS[type(value)], value) for name, value in row_of(NO_CONFIG).items()},
    },
)
EVENT = View(
    "source_event",
    {
        "id": Column(TEXT),
        "at": Column(TIME),
        "action": Column(word(Action)),
        "address": Column(TEXT),
        "asset_id": Column(ASSET_ID),
        "amount": Column(WHOLE, None),
        "usd": Column(DECIMAL, None),
        "price": Column(DECIMAL, None),
        "account_index": Column(WHOLE, None),
        "contract": Column(TEXT, ""),
        "destination": Column(TEXT_OR_NONE, None),
        "tx_hash": Column(TEXT, ""),
        "leg": Column(word(Leg), None),
    },
    query="source_events",
)
POSITION = View(
    "source_position",
    {
        "address": Column(TEXT),
        **_OBSERVED_AT,
        "kind": Column(TEXT),
        "account_index": Column(WHOLE, 0),
        "asset_id": Column(TEXT, ""),
        "pool": Column(WHOLE, 0),
        "amount": Column(WHOLE, 0),
        "cascade": Column(FLAG, False),
        "until": Column(TIME, _needed_for("kind", "unbonding")),
        "last_stake_acc": Column(DECIMAL, _ZERO),
    },
)
PTOKEN = View(
    "source_ptoken",
    {
        "asset_id": Column(ASSET_ID),
        **_OBSERVED_AT,
        "total_supply": Column(WHOLE),
        "total_issued": Column(WHOLE, 0),
        "total_claimed": Column(WHOLE, 0),
        "total_locked": Column(WHOLE, 0),
        "emission_rate": Column(WHOLE, 0),
        "tokens_per_weight": Column(WHOLE, 0),
        "rewards_last_distributed": Column(TIME, _same_as("observed_at")),
        "stake_acc": Column(DECIMAL, _ZERO),
    },
)
POOL = View(
    "source_pool",
    {
        "pool": Column(WHOLE),
        **_OBSERVED_AT,
        "duration": Column(WHOLE),
        "reward_weight": Column(DECIMAL, _ONE),
        "gov_weight": Column(DECIMAL, _ONE),
        "health_weight": Column(DECIMAL, _ONE),
        "flash_loan_weight": Column(DECIMAL, _ONE),
        "total_bonded": Column(WHOLE, 0),
    },
)
ARRANGEMENT = View(
    "source_arrangement",
    {
        "address": Column(TEXT),
        "arrangement": Column(WHOLE),
        **_OBSERVED_AT,
        "member_class": Column(word(MemberClass)),
        "kind": Column(word(ScheduleKind)),
        "amount": Column(WHOLE),
        "claimed": Column(WHOLE, 0),
        "begins_at": Column(TIME),
        "ends_at": Column(TIME, _needed_for("kind", ScheduleKind.LINEAR)),
        "expires_at": Column(TIME, None),
        "last_claimed_at": Column(TIME, None),
        "admin": Column(TEXT, ""),
        "reclaimed_at": Column(TIME, None),
        "staked": Column(WHOLE, 0),
        "held": Column(WHOLE, 0),
    },
)
ROUTE = View(
    "source_route",
    {"contract": Column(TEXT), **_OBSERVED_AT, "source": Column(TEXT), "targets": Column(TEXTS)},
)

VIEWS = {view.name: view for view in (ASSET, PRICE, MARKET, CONFIG, EVENT, POSITION, PTOKEN, POOL, ARRANGEMENT, ROUTE)}
