"""Shows records of the small protocol of `world`."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from analytics_service.market.portfolio import portfolio
from analytics_service.market.positions import Position
from analytics_service.market.ptoken import ScheduleKind
from analytics_service.present.shapes import Flags, Node, Scope
from tests.unit.world import ASSETS, AT, POSITION, PRICES, WORLD, arrangement

ALL = Flags(text=True, value=True, percent=True)
HELD = portfolio(POSITION, [arrangement(), arrangement(ScheduleKind.LUMP_SUM)], WORLD, AT)
NOTHING = portfolio(Position("a"), [], WORLD, AT)


def rendered(shape: Node, record: Any, flags: Flags = ALL, prices: Mapping[str, Decimal] = PRICES) -> Any:
    """A record in a shape, with everything there is unless told otherwise."""
    return shape.render(record, Scope(flags, ASSETS, prices))
