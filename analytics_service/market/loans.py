"""Events of borrowing and lending. The loans history and the analytics state are sums of them."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum


class EventKind(StrEnum):
    """Kind of event."""

    BORROW = "borrow"
    REPAY = "repay"
    LEND = "lend"
    REDEEM = "redeem"
    FLASH_LOAN = "flash_loan"
    LIQUIDATION = "liquidation"


@dataclass(frozen=True, slots=True)
class Event:
    """One event. `id` is never reused; `amount` is in denom units; `usd` is the value at the time of the event."""

    id: str
    kind: EventKind
    asset_id: str
    address: str
    at: datetime
    amount: int
    usd: Decimal
