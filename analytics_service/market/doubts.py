"""Values that may be wrong: a price of zero, a price that jumps, a total that falls by more than half.

A doubt is told and not judged: the value is stored and shown as any other.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from operator import itemgetter
from typing import Annotated

from analytics_service.market.instants import instant, shown
from analytics_service.market.kinds import Number, Text, Time, Word
from analytics_service.market.values import EXACT, rounded

# The name of the history of prices. Values of the others that are looked at are totals in USD.
_PRICE = "price"
# History, asset id (empty for the total over all assets), unix second and value; None if it is unknown.
Observed = tuple[str, str, int, Decimal | None]


class Doubtful(StrEnum):
    """What is doubtful."""

    ZERO = "zero"
    JUMP = "jump"
    FALL = "fall"


@dataclass(frozen=True, slots=True)
class Doubt:
    """A value in doubt, and the one before."""

    history: Annotated[str, Text("Name of the history, such as price or deposits_usd")]
    asset_id: Annotated[str, Text("Asset id; empty for the total over all assets")]
    observed_at: Annotated[datetime, Time("Instant of the value")]
    what: Annotated[Doubtful, Word("zero (a price of 0), jump (of a price), or fall (of a total, by more than half)")]
    value: Annotated[Decimal, Number("The value, in USD")]
    before_at: Annotated[datetime | None, Time("Instant of the value before; null if none is known")] = None
    before: Annotated[Decimal | None, Number("The value before, in USD; null if none is known")] = None
    symbol: str = field(default="", compare=False)
    """That of the asset, if it is known."""

    @property
    def words(self) -> str:
        """The doubt in words."""
        whose = f"{self.history} of {self.symbol or self.asset_id}" if self.asset_id else self.history
        words = f"{whose} at {shown(self.observed_at)} is {rounded(self.value):f}"
        if self.before is None or self.before_at is None:
            return words
        return f"{words}, after {rounded(self.before):f} at {shown(self.before_at)}"


@dataclass(frozen=True, slots=True)
class Limits:
    """How old the price before may be for a jump, and beyond which `factor` a price jumps."""

    max_age: timedelta = timedelta(days=1)
    factor: Decimal = Decimal(3)


def doubt_of(history: str, before: Decimal | None, value: Decimal, factor: Decimal) -> Doubtful | None:
    """What is doubtful in a value after the one before, if anything is."""
    if history != _PRICE:
        return Doubtful.FALL if before is not None and EXACT.multiply(value, 2) < before else None
    if not value:
        return Doubtful.ZERO
    if before and (value > EXACT.multiply(before, factor) or before > EXACT.multiply(value, factor)):
        return Doubtful.JUMP
    return None


def doubts_among(new: Iterable[Observed], stored: Iterable[Observed], limits: Limits) -> Iterator[Doubt]:
    """The doubts in new observations, each compared with the one before, which is new or `stored`."""
    last: dict[tuple[str, str], tuple[int, Decimal | None]] = {}
    rows = [*((*row, False) for row in stored), *((*row, True) for row in new)]
    for history, asset_id, second, value, is_new in sorted(rows, key=itemgetter(2)):
        at, before = last.get((history, asset_id), (second, None))
        if history == _PRICE and second - at > limits.max_age.total_seconds():
            before = None
        last[history, asset_id] = second, value
        if is_new and value is not None and (what := doubt_of(history, before, value, limits.factor)):
            # A zero is in doubt by itself, so its doubt does not end when another zero before it is taken out.
            before = before or None
            before_at = None if before is None else instant(at)
            yield Doubt(history, asset_id, instant(second), what, value, before_at, before)
