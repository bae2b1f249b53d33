"""Events of addresses. Loans originated, liquidations and the histories of addresses are made from them."""

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
# The namespace of events' uuids: an event has the same uuid wherever it is read.
_NAMESPACE = UUID("0a66ad88-cab3-5b27-816f-43b9bd2f33d9")
# The limit of a source's value of an event. It exceeds all real values, but sums of events below it can be stored.
_MAX_USD = Decimal(10) ** 16


class Action(StrEnum):
    """An action of an address."""

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
    """An event of an address.

    `id` is never reused within a source. `usd` is the value of the amount by `price`.
    """

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
        Word(
            "Leg of a liquidation: debt (the debt repaid) or collateral (the collateral taken). Empty for other actions"
        ),
    ] = None

    @property
    def lacks_amount(self) -> bool:
        """Whether it has no amount although it belongs to lending. Of a liquidation, that is the debt repaid."""
        return self.amount is None and self.action in _LENDING and self.leg is not Leg.COLLATERAL

    @property
    def uuid(self) -> str:
        """A UUID of the event's identity: the same whenever, and wherever, the event is read. It is the `id` if that is
        a UUID, and otherwise a version 5 UUID."""
        if _UUID.fullmatch(self.id):
            return self.id
        return str(uuid5(_NAMESPACE, f"{self.tx_hash};{self.id}"))


def storable_events(event: Event) -> Event:
    """A source's event at a whole second, with its address in lower case. Its value becomes unknown if its price or
    value is absurd: a single event must not keep all others from being stored."""
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
    """Selects events: of a (lower-case) address, in [start, end), unix seconds, of some actions and assets; None, no
    action and no asset mean all."""

    address: str | None = None
    start: int = 0
    end: int = TIME_LIMIT
    actions: tuple[Action, ...] = ()
    asset_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EventQuery:
    """A page of the events of a filter: `limit` events after the event `previous`, which need not match it, in
    descending order of time and uuid, or in `ascending` order."""

    filter: EventFilter
    limit: int
    previous: str | None = None
    ascending: bool = False


@dataclass(frozen=True, slots=True)
class EventList:
    """A page of events, whether more follow, and the number of all events that its filter selects."""

    events: Sequence[Event]
    has_more: bool
    count: int


@dataclass(frozen=True, slots=True)
class Sum:
    """USD value of all events of a kind since the protocol began, each at its time: in all, and by asset id."""

    total: Decimal
    by_asset: Mapping[str, Decimal]


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over all users that a source may state itself, because it does not tell all of their events; None for what
    must be summed from events."""

    loans: Sum | None = None
    liquidations: Sum | None = None
    flash_loans: Decimal | None = None
