"""Events of addresses. Loans originated, liquidations and histories of addresses derive from them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Annotated
from uuid import UUID, uuid5

from analytics_service.market.decimals import LIMIT, quantize_below_limit
from analytics_service.market.kinds import TIME_LIMIT, Address, Amount, AssetId, Index, Text, Time, Usd, Word

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# The namespace of events' uuids.
_NAMESPACE = UUID("0a66ad88-cab3-5b27-816f-43b9bd2f33d9")
# The limit of an event's value. No real value reaches it, and sums of values below it can be stored.
_MAX_USD = Decimal(10) ** 16


class Action(StrEnum):
    BORROW_FLASH_LOAN = "borrow_flash_loan"
    RETURN_FLASH_LOAN = "return_flash_loan"
    CREATE_TOKEN_UNLOCK = "create_token_unlock"
    RECLAIM_TOKEN_UNLOCK = "reclaim_token_unlock"
    LIQUIDATE = "liquidate"
    BORROW = "borrow"
    RETURN = "return"
    LEND = "lend"
    REDEEM = "redeem"
    DEPOSIT_COLLATERAL = "deposit_collateral"
    WITHDRAW_COLLATERAL = "withdraw_collateral"
    CLAIM_WAR_CHEST = "claim_war_chest"
    BOND = "bond"
    UNBOND = "unbond"
    CLAIM_UNBONDED = "claim_unbonded"
    CLAIM_TOKEN_UNLOCK = "claim_token_unlock"
    CLAIM_REWARDS = "claim_rewards"
    CASCADE = "cascade"
    SEND = "send"


class Leg(StrEnum):
    """The two legs of a liquidation: the repaid debt, and the seized collateral."""

    DEBT = "debt"
    COLLATERAL = "collateral"


_LENDING = {Action.BORROW, Action.RETURN, Action.LEND, Action.REDEEM, Action.BORROW_FLASH_LOAN, Action.LIQUIDATE}


@dataclass(frozen=True, slots=True)
class Event:
    """An event of an address. A source never reuses an `id`. `usd` is the amount times `price`."""

    id: Annotated[str, Text("Id of the event at its source")]
    action: Annotated[Action, Word("Action of the address, such as borrow, deposit_collateral or send")]
    asset_id: Annotated[str, AssetId("Asset id")]
    address: Annotated[str, Address("Address that acted, or that was liquidated, in lower case")]
    at: Annotated[datetime, Time("Instant of the event, in whole seconds")]
    amount: Annotated[int | None, Amount("Amount in denom units of the asset; null for an action that moves nothing")]
    usd: Annotated[Decimal | None, Usd("USD value of the amount at the time of the event; null where unknown")] = None
    price: Annotated[
        Decimal | None, Usd("USD per standard unit of the asset at the time of the event; null where unknown")
    ] = None
    account_index: Annotated[
        int | None,
        Index(
            "Index of the borrow account of a borrow, return, deposit_collateral, withdraw_collateral, liquidate, "
            "bond or unbond; else null"
        ),
    ] = None
    contract: Annotated[str, Text("Address of the contract that carried the action out")] = ""
    destination: Annotated[str | None, Text("Recipient of a send. Null for other actions")] = None
    tx_hash: Annotated[str, Text("Hash of the transaction. Both legs of a liquidation have the same hash")] = ""
    leg: Annotated[
        Leg | None,
        Word("Leg of a liquidation: debt (repaid) or collateral (seized). Empty for other actions"),
    ] = None

    @property
    def lacks_amount(self) -> bool:
        """Whether it lacks an amount although its action needs one."""
        return self.amount is None and self.action in _LENDING and self.leg is not Leg.COLLATERAL

    @property
    def uuid(self) -> str:
        """A UUID that depends on the event's identity only: the `id` if that is a UUID, else a version 5 UUID."""
        if _UUID.fullmatch(self.id):
            return self.id
        return str(uuid5(_NAMESPACE, f"{self.tx_hash};{self.id}"))


def storable_events(event: Event) -> Event:
    """A source's event at a whole second, with its address in lower case. An absurd price or value becomes unknown, so
    that one event does not keep all others from being stored."""
    if event.at.microsecond or not event.address.islower():
        event = replace(event, at=event.at.replace(microsecond=0), address=event.address.lower())
    if _is_credible(event.price, LIMIT) and _is_credible(event.usd, _MAX_USD):
        return event
    return replace(event, price=None, usd=None)


def _is_credible(value: Decimal | None, limit: Decimal) -> bool:
    stored = quantize_below_limit(value) if isinstance(value, Decimal) else None
    return value is None or (stored is not None and 0 <= stored < limit)


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Selects events by (lower-case) address, [start, end) in unix seconds, actions and assets. No address, action or
    asset means all."""

    address: str | None = None
    start: int = 0
    end: int = TIME_LIMIT
    actions: tuple[Action, ...] = ()
    asset_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EventQuery:
    """A page of the events of a filter: `limit` events after the event `previous`, which need not match the filter. The
    order is by time and uuid, descending unless `ascending`."""

    filter: EventFilter
    limit: int
    previous: str | None = None
    ascending: bool = False


@dataclass(frozen=True, slots=True)
class EventList:
    """A page of events, whether more follow, and the number of all events that match the filter."""

    events: Sequence[Event]
    has_more: bool
    count: int


@dataclass(frozen=True, slots=True)
class Sum:
    """USD value of all events of a kind since the protocol began, each valued at its time: total, and by asset id."""

    total: Decimal
    by_asset: Mapping[str, Decimal]


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over all users that a source reports because it does not list all events; None for sums over events."""

    loans: Sum | None = None
    liquidations: Sum | None = None
    flash_loans: Decimal | None = None
