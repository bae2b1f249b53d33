"""Cumulative sums of events, by asset and over all assets, with an observation at the second of each event.

So an event that comes late, moves or disappears changes the observations from there on, and unchanged sums write
nothing.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from analytics_service.market.decimals import EXACT, ZERO, sum_decimals

# The name of a sum, and its asset; TOTAL for the sum over all assets.
Series = tuple[str, str]
TOTAL = ""
Sums = Mapping[Series, Decimal]


@dataclass(frozen=True, slots=True)
class Increment:
    """An event's value, which series include from a second on."""

    second: int
    series: Sequence[Series]
    usd: Decimal


@dataclass(eq=False)
class Decrease(Exception):
    """A sum would be `usd` before a second whose given value is `less`."""

    series: Series
    usd: Decimal
    less: Decimal
    second: int


def sums_over_time(
    before: Sums,
    additions: Sequence[Increment],
    given: Mapping[int, Sums],
    ticks: Mapping[int, Iterable[Series]],
) -> Iterator[tuple[Series, int, Decimal]]:
    """The observations after a second, in the order of time: series, second and value. Raises Decrease if a sum would
    decrease.

    `before` has the last value of each series by then. Values that are `given` at a second include all events by then,
    and sums continue from them. A series starts with its first given value if earlier events exceed it. At `ticks`
    a series also has an observation if its last one is missing or stale, as after given values of assets that exceed
    the total.
    """
    shown, sums = dict(before), defaultdict(lambda: ZERO, before)
    _raise_totals(sums, {name for name, _ in before})
    happened: dict[int, list[Increment]] = defaultdict(list)
    begun = _beginnings(before, additions, given)
    for addition in additions:
        happened[addition.second].append(addition)
    for second in sorted({*happened, *given, *ticks}):
        known = given.get(second, {})
        for series, usd in known.items():
            if sums[series] > usd:
                raise Decrease(series, sums[series], usd, second)
        due: set[Series] = set()
        for addition in happened.get(second, ()):
            for series in addition.series:
                if second >= begun.get(series, 0):
                    due.add(series)
                    sums[series] = EXACT.add(sums[series], addition.usd)
        sums.update(known)
        _raise_totals(sums, {name for name, _ in known})
        due |= {series for series in ticks.get(second, ()) if shown.get(series) != sums[series]}
        for series in sorted(due - known.keys()):
            shown[series] = sums[series]
            yield series, second, sums[series]
        shown.update(known)


def _beginnings(before: Sums, additions: Iterable[Increment], given: Mapping[int, Sums]) -> Mapping[Series, int]:
    """The second of the first given value, for each series without a value before and whose earlier events exceed
    it."""
    first: dict[Series, tuple[int, Decimal]] = {}
    for second in sorted(given, reverse=True):
        first |= {series: (second, usd) for series, usd in given[second].items() if series not in before}
    sums: dict[Series, Decimal] = defaultdict(lambda: ZERO)
    for addition in additions:
        for series in addition.series:
            if series in first and addition.second < first[series][0]:
                sums[series] = EXACT.add(sums[series], addition.usd)
    return {series: second for series, (second, usd) in first.items() if sums[series] > usd}


def _raise_totals(sums: dict[Series, Decimal], names: Iterable[str]) -> None:
    """Raise totals to the sum over assets: given values may be of assets only."""
    for name in names:
        of_assets = sum_decimals(usd for (of, asset_id), usd in sums.items() if of == name and asset_id)
        sums[name, TOTAL] = max(sums[name, TOTAL], of_assets)
