"""Interest that lenders of a market earn, from snapshots of it."""

from collections.abc import Iterable
from dataclasses import dataclass

# Interest is added up in units of 2^-64 denom units, each rounded up, so that the whole units of the sum are exact.
_BITS = 64


@dataclass(frozen=True, slots=True)
class Earned:
    """What lenders have earned since the first snapshot of their market: the rise of the redemption ratio above the
    highest so far, times the receipts out at the snapshot before. A loss that is recovered earns nothing.

    `highest` is that ratio, as principal and receipts in denom units; None before there were receipts.
    """

    highest: tuple[int, int] | None = None
    receipts: int = 0
    parts: int = 0

    @property
    def units(self) -> int:
        """Denom units of the lent asset, rounded down."""
        return self.parts >> _BITS

    def after(self, snapshots: Iterable[tuple[int, int]]) -> "Earned":
        """What is earned by the last of some later snapshots: principal and receipts of each, oldest first."""
        highest, out, parts = self.highest, self.receipts, self.parts
        for principal, receipts in snapshots:
            if receipts:
                top, base = highest or (0, 1)
                if (rise := principal * base - top * receipts) > 0 and highest:
                    parts -= -(out * rise << _BITS) // (receipts * base)
                if rise > 0 or not highest:
                    highest = principal, receipts
            out = receipts
        return Earned(highest, out, parts)
