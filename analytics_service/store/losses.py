"""Losses: rows that the store once had, and that answers now lack (rule 8.19, losses)."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from analytics_service.errors import Lost
from analytics_service.market.instants import format_instant, from_unix
from analytics_service.market.kinds import FOREVER
from analytics_service.store.datasets.events import EVENTS
from analytics_service.store.datasets.histories import HISTORIES

LOSSES = "loss"
# Tables whose rows can be restored only together with all later ones: they hold changes, or derive from events.
_CHANGES = {"position_change", "position_summary", EVENTS}
_HISTORIES = {history.name for history in HISTORIES}
# Datasets whose histories are computed from their tables.
_COMPUTED = ("positions", "loans")


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
    """A line for operators for each dataset, and for each broken part: what is lost, and what to do once the disk is
    sound."""
    alike: defaultdict[str, list[tuple[str, Loss]]] = defaultdict(list)
    for dataset, found in sorted(losses.items()):
        for loss in found:
            # A broken part may concern several datasets.
            alike[dataset if loss.what in _CHANGES else loss.part or dataset].append((dataset, loss))
    return [_line(*zip(*group, strict=True)) for group in alike.values()]


def _line(datasets: Sequence[str], losses: Sequence[Loss]) -> str:
    dataset = datasets[0]
    broken = dict.fromkeys(f"detached/{loss.part} of {_table(loss)}" for loss in losses if loss.part)
    remedies = [_remedy(dataset, losses) if dataset else "", f"delete {', '.join(broken)}" if broken else ""]
    whose = f"{dataset}: " if dataset and {*datasets} == {dataset} else ""
    return f"{whose}{_describe(losses)}; {', then '.join(filter(None, remedies))}"


def _table(loss: Loss) -> str:
    return "observation" if loss.what in _HISTORIES else loss.what


def _describe(losses: Sequence[Loss]) -> str:
    first, last = min(loss.first for loss in losses), max(loss.last for loss in losses)
    between = f" between {format_instant(from_unix(first))} and {format_instant(from_unix(last))}"
    after = f" from {format_instant(from_unix(first))} on" if first else ""
    names = ", ".join(dict.fromkeys(loss.what for loss in losses))
    return f"rows of {names} are lost{after if last == FOREVER else between}"


def _remedy(dataset: str, losses: Sequence[Loss]) -> str:
    """How to restore rows that answers need."""
    first, last = min(loss.first for loss in losses), max(loss.last for loss in losses)
    start, names = format_instant(from_unix(first)), {loss.what for loss in losses}
    span = f"--start {start} --end {'now' if last == FOREVER else format_instant(from_unix(last))}"
    command = f"jobs backfill {dataset} {span} --again"
    if "asset_definition" in names:
        command = f"jobs backfill prices {span} --again"
    elif "snapshot" in names:
        command = f"jobs backfill all {span}"
    elif names & _CHANGES:
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
