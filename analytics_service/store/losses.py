"""What the store has lost (rule 8.19): rows that it had, and that answers lack."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from analytics_service.errors import Lost
from analytics_service.market.instants import instant, shown
from analytics_service.market.kinds import TIME_LIMIT

LOSSES = "loss"
# The end of a loss that changes all later answers, unix seconds.
FOREVER = TIME_LIMIT - 1
# Families whose snapshots are not simply replaced: they are stored as changes, or made from events.
_CHANGES = ("positions", "loans")


@dataclass(frozen=True, slots=True)
class Loss:
    """Rows of a history or table that are lost. Answers lack them from `first` to `last` (unix seconds, both included),
    which is until all that they were of has later rows. `part` is the folder of a broken part whose rows nothing
    counts, as ClickHouse names it; else empty."""

    what: str
    first: int
    last: int
    part: str = ""

    def __str__(self) -> str:
        return f"rows of {self.what} are lost{self._span}"

    @property
    def _span(self) -> str:
        if self.last == FOREVER:
            return f" from {shown(instant(self.first))} on" if self.first else ""
        return f" between {shown(instant(self.first))} and {shown(instant(self.last))}"

    def overlaps(self, first: int, last: int) -> bool:
        """Whether answers for a range (unix seconds, both included) lack rows."""
        return self.first <= last and first <= self.last


def told_losses(losses: Mapping[str, Sequence[Loss]]) -> list[str]:
    """Words for operators about losses by family: what is lost, and what to do once the disk is sound."""
    alike: defaultdict[object, list[tuple[str, Loss]]] = defaultdict(list)
    for family, found in sorted(losses.items()):
        for loss in found:
            # Several families may need a broken part, and several histories of a family lack the same time.
            alike[loss.part or (family, loss.first, loss.last)].append((family, loss))
    return [_told(*map(dict.fromkeys, zip(*group, strict=True))) for group in alike.values()]


def _told(families: Iterable[str], losses: Iterable[Loss]) -> str:
    """Words about losses of the same time, or by the same part."""
    (family, *others), (first, *_) = families, losses
    what = replace(first, what=", ".join(dict.fromkeys(loss.what for loss in losses)))
    of, again = ("", "") if others or not family else (f"{family}: ", f"{_again(family, first)}, ")
    end = f"; then delete the broken part {first.part}" if first.part else ""
    return f"{of}{what}; {again}import again or restore a backup{end}"


def _again(family: str, loss: Loss) -> str:
    start = shown(instant(loss.first))
    span = f"{family} --start {start} --end {'now' if loss.last == FOREVER else shown(instant(loss.last))}"
    if family in _CHANGES:
        return f"run `analytics-service remove {family} --start {start}` and `analytics-service jobs backfill {span}`"
    return f"run `analytics-service jobs backfill {span} --again`"


def require_kept(losses: Iterable[Loss], first: int, last: int) -> None:
    """Lost if an answer for a range (unix seconds, both included) lacks rows by any of these losses."""
    for loss in losses:
        if loss.overlaps(first, last):
            raise Lost(f"The store has lost data that this answer needs: {loss}. Its operator can bring it back.")
