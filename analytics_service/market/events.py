"""Events of addresses. Loans originated, liquidations and the histories of addresses are made from them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from uuid import UUID, uuid5

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# The namespace of events' uuids: an event has the same uuid wherever it is read.
_NAMESPACE = UUID("0a66ad88-cab3-5b27-816f-43b9bd2f33d9")


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


@dataclass(frozen=True, slots=True)
class Event:
    """An event of an address.

    `id` is never reused within a source. `amount` is in denom units; None for an action that moves nothing. `price`
    and `usd` are the price of the asset and the value of the amount at the time of the event, if known.
    `account_index` is set for actions on one of the address's borrow accounts, `destination` for send, `leg` for
    liquidate, whose two legs have the same `tx_hash`.
    """

    id: str
    action: Action
    asset_id: str
    address: str
    at: datetime
    amount: int | None
    usd: Decimal | None = None
    price: Decimal | None = None
    account_index: int | None = None
    contract: str = ""
    destination: str | None = None
    tx_hash: str = ""
    leg: Leg | None = None

    @property
    def uuid(self) -> str:
        """A UUID of the event's identity: the same whenever, and wherever, the event is read. It is the `id` if that is
        a UUID, and otherwise a version 5 UUID."""
        if _UUID.fullmatch(self.id):
            return self.id
        return str(uuid5(_NAMESPACE, f"{self.tx_hash};{self.id}"))


@dataclass(frozen=True, slots=True)
class EventList:
    """Consecutive events of an address; `count` is the number of all its events, regardless of their action."""

    events: Sequence[Event]
    count: int


@dataclass(frozen=True, slots=True)
class EventQuery:
    """Selects events of an address: `limit` events after the event `previous`, in descending order of time and uuid, or
    in `ascending` order; with an `action`, only events of that action."""

    limit: int
    previous: str | None = None
    ascending: bool = False
    action: Action | None = None
