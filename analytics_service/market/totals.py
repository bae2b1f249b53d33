"""Sums over all users of a protocol that a source may state itself, because it does not tell all of their events."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True, slots=True)
class Sum:
    """USD value of all events of a kind since the protocol began, each at its time: in all, and by asset id."""

    total: Decimal
    by_asset: Mapping[str, Decimal]


@dataclass(frozen=True, slots=True)
class Totals:
    """The sums of loans, liquidations and flash loans; None for what must be summed from events."""

    loans: Sum | None = None
    liquidations: Sum | None = None
    flash_loans: Decimal | None = None
