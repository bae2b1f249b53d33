"""Events of addresses. Loans originated, liquidations and the histories of addresses are made from them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Annotated
from uuid import UUID, uuid5

from analytics_service.market.kinds import Address, Amount, AssetId, Index, Text, Time, Usd, Word

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# The namespace of events' uuids: an event has the same uuid wherever it is read.
_NAMESPACE = UUID("0a66ad88-cab3-5b27-816f-43b9bd2f33d9")
# The last second that ClickHouse's DateTime has.
LATEST = 2**32 - 1


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
    action: Annotated[Action, Word("What the address did, such as borrow, deposit_collateral or send")]
    asset_id: Annotated[str, AssetId("Asset id")]
    address: Annotated[str, Address("Address that acted, or that was liquidated, in lower case")]
    at: Annotated[datetime, Time("Instant of the event, whole seconds")]
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
    destination: Annotated[str | None, Text("Address that a send went to; else null")] = None
    tx_hash: Annotated[str, Text("Hash of the transaction; both legs of a liquidation have the same")] = ""
    leg: Annotated[
        Leg | None, Word("Of a liquidation: debt (the debt repaid) or collateral (the collateral taken); else empty")
    ] = None

    @property
    def is_lending(self) -> bool:
        """Whether it belongs to lending: then it has an amount. Of a liquidation, that is the debt repaid."""
        return self.action in _LENDING and self.leg is not Leg.COLLATERAL

    @property
    def uuid(self) -> str:
        """A UUID of the event's identity: the same whenever, and wherever, the event is read. It is the `id` if that is
        a UUID, and otherwise a version 5 UUID."""
        if _UUID.fullmatch(self.id):
            return self.id
        return str(uuid5(_NAMESPACE, f"{self.tx_hash};{self.id}"))


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Selects events: of a (lower-case) address, from `start` to `end` (unix seconds, both included), of some
    actions and assets; None, no action and no asset mean all."""

    address: str | None = None
    start: int = 0
    end: int = LATEST
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
