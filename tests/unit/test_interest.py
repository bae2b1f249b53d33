"""Interest that lenders earn, from principal and receipts at consecutive snapshots."""

import random
from fractions import Fraction
from itertools import pairwise

import pytest

from analytics_service.market.rates import Earned

# Principal and receipts at each snapshot, and what was earned since the first, in denom units.
CASES = {
    "a ratio of 0.02 at first earns nothing, and 100,000 receipts 200 up to 0.022": (
        [(2000, 100_000), (2200, 100_000)],
        200,
    ),
    "a loss that is recovered is none": ([(1100, 1000), (1050, 1000), (1100, 1000)], 0),
    "above the highest so far, only the rise above it counts": ([(1100, 1000), (1050, 1000), (1150, 1000)], 50),
    "receipts of the snapshot before count": ([(1000, 1000), (550, 500), (6000, 5000)], 100 + 50),
    "a market without receipts has no ratio": ([(0, 0), (7, 0), (110, 100), (0, 0), (120, 100), (130, 100)], 10),
    "a third of a unit at each of three snapshots is a whole one": ([(3, 3), (10, 9), (11, 9), (4, 3)], 2),
    "a total loss, and a better start": ([(100, 100), (0, 100), (150, 100)], 50),
    "one snapshot": ([(1100, 1000)], 0),
    "none": ([], 0),
}


@pytest.mark.parametrize(("snapshots", "units"), CASES.values(), ids=CASES)
def test_interest_is_the_rise_of_the_ratio_above_the_highest_times_the_receipts(
    snapshots: list[tuple[int, int]], units: int
) -> None:
    assert Earned().after(snapshots).units == units


def test_interest_is_exact_in_whole_units_however_the_snapshots_are_grouped(draw: random.Random) -> None:
    """Receipts with 36 decimals of an asset with 6, and the other way round: sums of fractions tell the right ones."""
    for receipt, asset in ((10**36, 10**6), (10**6, 10**36)):
        supplies = [draw.randrange(receipt, 10**9 * receipt) for _ in range(50)]
        ratios = [Fraction(draw.randrange(10**9, 2 * 10**9), 10**9) for _ in supplies]
        snapshots = [(int(asset * ratio * out / receipt), out) for ratio, out in zip(ratios, supplies, strict=True)]
        highest, exact = Fraction(*snapshots[0]), Fraction(0)
        for (_, out), (principal, receipts) in pairwise(snapshots):
            exact += out * max(Fraction(0), Fraction(principal, receipts) - highest)
            highest = max(highest, Fraction(principal, receipts))
        middle = draw.randrange(len(snapshots))
        assert Earned().after(snapshots).units == int(exact)
        assert Earned().after(snapshots[:middle]).after(snapshots[middle:]).units == int(exact)
