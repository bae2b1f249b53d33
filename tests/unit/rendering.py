"""Renders records of the small protocol."""

from collections.abc import Mapping
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

from analytics_service.market.portfolio import Portfolio, unlocks_at
from analytics_service.market.positions import Position
from analytics_service.market.ptoken import ScheduleKind
from analytics_service.present.shapes import Flags, Node, Scope
from tests.unit.small_protocol import ASSETS, AT, CONTEXT, POSITION, PRICES, PTK, arrangement

ALL = Flags(text=True, value=True, percent=True)
_ARRANGEMENTS = [arrangement(), arrangement(ScheduleKind.LUMP_SUM)]
USER = SimpleNamespace(portfolio=Portfolio(POSITION, CONTEXT), unlocks=unlocks_at(_ARRANGEMENTS, PTK, AT))
EMPTY_USER = SimpleNamespace(portfolio=Portfolio(Position("a"), CONTEXT), unlocks=unlocks_at([], PTK, AT))


def rendered(shape: Node, record: Any, flags: Flags = ALL, prices: Mapping[str, Decimal] = PRICES) -> Any:
    """The record in the shape, with all variants by default."""
    return shape.render(record, Scope(flags, ASSETS, prices))
