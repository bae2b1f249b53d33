"""Sources for tests that start and stop the service: the simulated protocol without the cost of its past."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from analytics_service.market.events import Event
from analytics_service.sources.simulated.source import SimulatedSource

_PAST = timedelta(hours=2)


class Recent(SimulatedSource):
    """The simulated protocol, with a history of two hours in which all of its events happened."""

    @property
    def spec(self) -> str:
        """`recent:<seed>`."""
        return f"recent:{self._seed}"

    @property
    def history(self) -> timedelta:
        """Two hours instead of three months."""
        return _PAST

    @property
    def since(self) -> None:
        """No prices from before."""

    def events(self, after: datetime, until: datetime) -> Sequence[Event]:
        """Those of the last two hours."""
        return super().events(max(after, until - _PAST), until)


class Observed(Recent):
    """Stands for a protocol that is not made up, so that its data may join imported history."""

    simulated = False

    @property
    def spec(self) -> str:
        """`observed:<seed>`."""
        return f"observed:{self._seed}"
