"""Sources for tests that start and stop the service: the simulated protocol without the cost of its past."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from analytics_service.market.events import Event
from analytics_service.market.instants import unix_second
from analytics_service.sources.simulated.ledger import world_ledger
from analytics_service.sources.simulated.source import SimulatedSource
from analytics_service.sources.simulated.state import WorldState
from analytics_service.sources.simulated.terms import LAUNCH

_PAST = timedelta(hours=2)
# As if the protocol had been launched about sixty days ago: its state is the fold of all since then.
_LATER = timedelta(days=(datetime.now(UTC) - datetime.fromtimestamp(LAUNCH, UTC)).days - 60)


class Recent(SimulatedSource):
    """The simulated protocol, with a history of two hours in which all of its events happened."""

    @property
    def spec(self) -> str:
        """`recent:<seed>`."""
        return f"recent:{self._seed}"

    # Two hours instead of three months, and no prices from before.
    history = _PAST
    since = None

    def events(self, start: datetime, end: datetime) -> Sequence[Event]:
        """Those of the last two hours."""
        then = super().events(max(start, end - _PAST) - _LATER, end - _LATER)
        return [replace(event, at=event.at + _LATER) for event in then]

    def _state(self, at: datetime) -> tuple[WorldState, int]:
        second = unix_second(at - _LATER)
        return world_ledger(self._seed).at(second), second
