"""Renders records of the small protocol."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from analytics_service.market.portfolio import portfolio
from analytics_service.market.positions import Position
from analytics_service.market.ptoken import ScheduleKind
from analytics_service.present.shapes import Flags, Node, Scope
from tests.unit.small_protocol import ASSETS, AT, CONTEXT, POSITION, PRICES, arrangement

ALL = Flags(text=True, value=True, percent=True)
PORTFOLIO = portfolio(POSITION, [arrangement(), arrangement(ScheduleKind.LUMP_SUM)], CONTEXT, AT)
EMPTY_PORTFOLIO = portfolio(Position("a"), [], CONTEXT, AT)


def rendered(shape: Node, record: Any, flags: Flags = ALL, prices: Mapping[str, Decimal] = PRICES) -> Any:
    """The record in the shape, with all variants by default."""
    return shape.render(record, Scope(flags, ASSETS, prices))
