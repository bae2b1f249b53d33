"""What can be imported."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from analytics_service.sources.tables import PRICE_FORMS, RATE_FORMS, Form


@dataclass(frozen=True, slots=True)
class Family:
    """What can be imported: its ledger family, the forms of its files, and by table which field fills which column.

    Every row fills the first table.
    """

    name: str
    forms: Sequence[Form]
    tables: Mapping[str, tuple[str, str]]


PRICES = Family("prices", PRICE_FORMS, {"price": ("price", "price")})
RATES = Family("rates", RATE_FORMS, {"lend_rate": ("lend", "apr"), "borrow_rate": ("borrow", "apr")})
