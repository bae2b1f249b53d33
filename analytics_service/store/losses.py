"""Losses: rows that the store once had, and that answers now lack (rule 8.19, losses)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from analytics_service.errors import Lost
from analytics_service.market.instants import format_instant, from_unix
from analytics_service.market.kinds import FOREVER

LOSSES = "loss"
_REMEDY = 'see "Lost rows" in the README of the commands'


@dataclass(frozen=True, slots=True, order=True)
class Loss:
    """Lost rows of a history or table. Answers lack them from `first` to `last` (unix seconds, both included): until
    later rows replace them, or FOREVER. `part` names a broken part whose rows nothing counts; else it is empty."""

    what: str
    first: int
    last: int
    part: str = ""

    def __str__(self) -> str:
        return _describe([self])

    def overlaps(self, start: int, end: int) -> bool:
        """Whether answers for [start, end) (unix seconds) lack rows."""
        return self.first < end and start <= self.last


def describe_losses(losses: Mapping[str, Sequence[Loss]]) -> list[str]:
    """A line for operators for each dataset."""
    return [
        f"{dataset and f'{dataset}: '}{_describe(found)}; {_REMEDY}"
        for dataset, found in sorted(losses.items())
        if found
    ]


def _describe(losses: Sequence[Loss]) -> str:
    first, last = min(loss.first for loss in losses), max(loss.last for loss in losses)
    between = f" between {format_instant(from_unix(first))} and {format_instant(from_unix(last))}"
    after = f" from {format_instant(from_unix(first))} on" if first else ""
    names = ", ".join(dict.fromkeys(loss.what for loss in losses))
    return f"rows of {names} are lost{after if last == FOREVER else between}"


def require_kept(losses: Iterable[Loss], start: int, end: int) -> None:
    """Lost if an answer for [start, end) (unix seconds) lacks rows by any of these losses."""
    for loss in losses:
        if loss.overlaps(start, end):
            raise Lost(f"The store has lost data that this answer needs: {loss}. Its operator can restore it.")
