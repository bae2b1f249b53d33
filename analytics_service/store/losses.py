"""Losses: rows that the store once had, and that answers now lack (rule 8.19, losses)."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

from analytics_service.errors import Lost
from analytics_service.market.instants import format_instant, from_unix
from analytics_service.market.kinds import FOREVER
from analytics_service.store.datasets.events import EVENTS

LOSSES = "loss"
# Tables whose rows can be restored only together with all later ones: they hold changes, or derive from events.
_CHANGES = ("position_change", "position_summary", EVENTS)
# Datasets whose histories are computed from their tables.
_COMPUTED = ("positions", "loans")


@dataclass(frozen=True, slots=True)
class Loss:
    """Lost rows of a history or table. Answers lack them from `first` to `last` (unix seconds, both included): until
    later rows replace them, or FOREVER. `part` names a broken part whose rows nothing counts; else it is empty."""

    what: str
    first: int
    last: int
    part: str = ""

    def __str__(self) -> str:
        return f"rows of {self.what} are lost{self._span}"

    @property
    def _span(self) -> str:
        if self.last == FOREVER:
            return f" from {format_instant(from_unix(self.first))} on" if self.first else ""
        return f" between {format_instant(from_unix(self.first))} and {format_instant(from_unix(self.last))}"

    def overlaps(self, start: int, end: int) -> bool:
        """Whether answers for [start, end) (unix seconds) lack rows."""
        return self.first < end and start <= self.last


def describe_losses(losses: Mapping[str, Sequence[Loss]]) -> list[str]:
    """Lines for operators about losses by dataset: what is lost, and what to do once the disk is sound."""
    alike: defaultdict[object, list[tuple[str, Loss]]] = defaultdict(list)
    for dataset, found in sorted(losses.items()):
        for loss in found:
            # A broken part may concern several datasets, and a time range several histories of a dataset.
            cause = (loss.what, loss.part) if loss.part else (dataset, loss.first, loss.last)
            alike[dataset if loss.what in _CHANGES else cause].append((dataset, loss))
    return [_describe(*map(dict.fromkeys, zip(*group, strict=True))) for group in alike.values()]


def _describe(datasets: Iterable[str], losses: Iterable[Loss]) -> str:
    """A line about losses that share a time range, a broken part or a remedy."""
    (dataset, *others), (first, *_) = datasets, sorted(losses, key=attrgetter("first"))
    what = replace(first, what=", ".join(dict.fromkeys(loss.what for loss in losses)))
    broken = ", ".join(dict.fromkeys(f"detached/{loss.part} of {loss.what}" for loss in losses if loss.part))
    remedies = [_remedy(dataset, first), f"delete {broken}" if broken else ""]
    return f"{f'{dataset}: ' if dataset and not others else ''}{what}; {', then '.join(filter(None, remedies))}"


def _remedy(dataset: str, loss: Loss) -> str:
    """How to restore rows that answers need; empty if none do."""
    if not dataset:
        return ""
    start, end = (format_instant(from_unix(second)) for second in (loss.first, loss.last))
    span = f"--start {start} --end {'now' if loss.last == FOREVER else end}"
    command = f"jobs backfill {dataset} {span} --again"
    if loss.what == "asset_definition":
        command = f"jobs backfill prices {span} --again"
    elif loss.what == "snapshot":
        command = f"jobs backfill all {span}"
    elif loss.what in _CHANGES:
        removal, command = f"remove {dataset} --start {start}", f"jobs backfill {dataset} --start {start} --end now"
        return f"run `analytics-service {removal}` and `analytics-service {command}`, or restore a backup"
    elif dataset in _COMPUTED:
        command = f"jobs recompute {dataset} {span}"
    return f"run `analytics-service {command}`, import again or restore a backup"


def require_kept(losses: Iterable[Loss], start: int, end: int) -> None:
    """Lost if an answer for [start, end) (unix seconds) lacks rows by any of these losses."""
    for loss in losses:
        if loss.overlaps(start, end):
            raise Lost(f"The store has lost data that this answer needs: {loss}. Its operator can restore it.")
